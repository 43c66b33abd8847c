/* A file is read as a whole, then line by line. Each line is a document of its
 * own, so an error names its line. Strings are copied, since files and trees
 * are freed before the evaluation begins. */
#include "lab/eval_data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/json.h"
#include "cli/slurp.h"
#include "model/agent.h"
#include "model/profile.h"

/* A fixed seed: names in a local file are not an attack on the table. */
static const uint64_t map_seed[2] = {0x5e1ec7ed, 0xa9e2750f};

enum { SCRATCH_MAX = 256 * 1024 * 1024 };
#define ARENA_MAX ((size_t)4 * 1024 * 1024 * 1024)

/* The position in a file. */
struct dataset_pos {
    struct eval_set *set;
    const char *path;
    size_t line;
    struct why *why;
};

#define COMPLAIN(a, e, v, fmt, ...)                                            \
    why_err((a)->why, e, "%s:%zu:%u: " fmt, (a)->path, (a)->line, (v)->at + 1, \
            ##__VA_ARGS__)

static enum err dataset_no_memory(const struct dataset_pos *a)
{
    return why_err(a->why, ERR_NOMEM, "%s: out of memory", a->path);
}

void eval_set_init(struct eval_set *s)
{
    *s = (struct eval_set){.n_agents = 0};
    arena_init(&s->arena, ARENA_MAX);
    arena_init(&s->scratch, SCRATCH_MAX);
    map_init(&s->by_name, EVAL_AGENTS_MAX, map_seed);
}

void eval_set_fini(struct eval_set *s)
{
    free(s->agents);
    free(s->texts);
    free(s->queries);
    free(s->examples);
    map_fini(&s->by_name);
    arena_fini(&s->scratch);
    arena_fini(&s->arena);
}

/* Makes room for one more element. */
static enum err dataset_grow_list(void **list, size_t size, size_t n,
                                  size_t *cap, size_t most)
{
    size_t more = *cap ? *cap * 2 : 64;
    void *p;

    if (n < *cap)
        return OK;
    if (n >= most)
        return ERR_LIMIT;
    if (more > most)
        more = most;
    p = FAULT("eval.grow") ? NULL : realloc(*list, more * size);
    if (!p)
        return ERR_NOMEM;
    *list = p;
    *cap = more;
    return OK;
}

#define GROW(s, what, most)                                                   \
    dataset_grow_list((void **)&(s)->what, sizeof(*(s)->what), (s)->n_##what, \
                      &(s)->what##_cap, most)

static enum err dataset_too_many(const struct dataset_pos *a, enum err e,
                                 int most, const char *what)
{
    if (e == ERR_LIMIT)
        return why_err(a->why, e, "%s:%zu: more than %d %s", a->path, a->line,
                       most, what);
    return dataset_no_memory(a);
}

static bool dataset_keep_text(struct eval_set *s, struct str text,
                              struct str *out)
{
    return !FAULT("eval.keep") && arena_keep(&s->arena, text, out);
}

/* Files and lines. */

static enum err dataset_read_file(const struct dataset_pos *a, struct buf *out)
{
    int fd = FAULT("eval.open") ? (errno = EIO, -1)
                                : open(a->path, O_RDONLY | O_CLOEXEC);
    enum err e;

    if (fd < 0)
        return why_err(a->why, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO,
                       "cannot open %s: %s", a->path, strerror(errno));
    e = slurp(fd, out, EVAL_FILE_MAX);
    if (e == ERR_IO)
        why_err(a->why, e, "cannot read %s: %s", a->path, strerror(errno));
    else if (e == ERR_LIMIT)
        why_err(a->why, e, "%s is larger than %d MiB", a->path,
                EVAL_FILE_MAX / (1024 * 1024));
    else if (e)
        dataset_no_memory(a);
    close(fd);
    return e;
}

static bool dataset_is_blank(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!strchr(" \t\r", s.p[i]) || !s.p[i])
            return false;
    return true;
}

static enum err dataset_parse_line(const struct dataset_pos *a, struct str line,
                                   struct json **out)
{
    struct json_error err;

    if (line.n > EVAL_LINE_MAX)
        return why_err(a->why, ERR_LIMIT, "%s:%zu: longer than %d MiB", a->path,
                       a->line, EVAL_LINE_MAX / (1024 * 1024));
    arena_reset(&a->set->scratch);
    *out = json_parse(&a->set->scratch, line, 0, &err);
    if (!*out)
        return why_err(a->why, ERR_SYNTAX, "%s:%zu:%u: %s", a->path, a->line,
                       err.col, err.what);
    if ((*out)->type != JSON_OBJ)
        return COMPLAIN(a, ERR_BAD_REQUEST, *out,
                        "each line must be an object, { ... }");
    return OK;
}

typedef enum err take_fn(struct dataset_pos *a, const struct json *line);

static enum err dataset_each_line(struct dataset_pos *a, struct str text,
                                  size_t limit, take_fn *take)
{
    static const struct str mark = {"\xef\xbb\xbf", 3};
    size_t n = 0;
    enum err e = OK;

    /* Some editors put a byte order mark before UTF-8. */
    if (str_starts(text, mark))
        text = str_sub(text, mark.n, text.n);
    while (text.n && n < limit && !e) {
        struct str line = str_cut(&text, '\n');
        struct json *v = NULL;

        a->line++;
        if (dataset_is_blank(line))
            continue;
        n++;
        e = dataset_parse_line(a, line, &v);
        if (!e)
            e = take(a, v);
    }
    if (!e && !n)
        e = why_err(a->why, ERR_BAD_REQUEST, "%s is empty", a->path);
    return e;
}

static enum err dataset_read_lines(struct dataset_pos *a, size_t limit,
                                   take_fn *take)
{
    struct buf text;
    enum err e;

    buf_init(&text, EVAL_FILE_MAX + SLURP_BYTES);
    e = dataset_read_file(a, &text);
    if (!e)
        e = dataset_each_line(a, buf_str(&text), limit, take);
    buf_fini(&text);
    return e;
}

/* Members. */

/* A member that is text; empty if it is missing and not required. */
static enum err dataset_get_text(const struct dataset_pos *a,
                                 const struct json *v, const char *key,
                                 bool is_needed, struct str *out)
{
    struct json *m = json_get(v, str_of(key));

    *out = STR("");
    if (!m && !is_needed)
        return OK;
    if (!m)
        return COMPLAIN(a, ERR_BAD_REQUEST, v, "has no \"%s\"", key);
    if (m->type != JSON_STR)
        return COMPLAIN(a, ERR_BAD_REQUEST, m, "\"%s\" must be text", key);
    *out = m->s;
    return OK;
}

static enum err dataset_get_list(const struct dataset_pos *a,
                                 const struct json *v, const char *key,
                                 struct json **out)
{
    *out = json_get(v, str_of(key));
    if (*out && (*out)->type != JSON_ARR)
        return COMPLAIN(a, ERR_BAD_REQUEST, *out, "\"%s\" must be a list", key);
    return OK;
}

/* Agents. */

static enum err dataset_add_text(struct dataset_pos *a, struct str text)
{
    struct eval_set *s = a->set;
    enum err e = GROW(s, texts, EVAL_TEXTS_MAX);

    if (e)
        return dataset_too_many(a, e, EVAL_TEXTS_MAX, "texts of agents");
    if (!dataset_keep_text(s, text, &s->texts[s->n_texts]))
        return dataset_no_memory(a);
    s->n_texts++;
    s->agents[s->n_agents].n_texts++;
    return OK;
}

static enum err dataset_add_profile(struct dataset_pos *a, struct str name,
                                    struct str description)
{
    struct buf text;
    enum err e;

    buf_init(&text, EVAL_LINE_MAX + 1024);
    profile_add(&text, name, description);
    e = text.over ? dataset_no_memory(a) : dataset_add_text(a, buf_str(&text));
    buf_fini(&text);
    return e;
}

static enum err dataset_add_examples(struct dataset_pos *a,
                                     const struct json *v)
{
    struct json *list;
    enum err e = dataset_get_list(a, v, "examples", &list);

    if (e || !list)
        return e;
    JSON_EACH(example, list)
    {
        if (example->type != JSON_STR)
            return COMPLAIN(a, ERR_BAD_REQUEST, example,
                            "an example must be text");
        e = dataset_add_text(a, example->s);
        if (e)
            return e;
    }
    return OK;
}

/* Keeps the skill as in a card, in addition to its texts. */
static enum err dataset_keep_skill(struct dataset_pos *a,
                                   const struct json *skill, struct str name,
                                   struct str description, struct skill *out)
{
    struct eval_set *s = a->set;
    const struct json *from = json_get(skill, STR("examples"));
    struct str *list = NULL;
    size_t n = from ? from->kids.n : 0;

    if (n && !FAULT("eval.examples"))
        list = arena_array(&s->arena, n, sizeof(*list));
    if ((n && !list) || !dataset_keep_text(s, name, &out->name) ||
        !dataset_keep_text(s, description, &out->description))
        return dataset_no_memory(a);
    out->id = out->name; /* the file has no ids */
    out->examples = (struct strs){list, n};
    /* The examples were the last texts to be added. */
    for (size_t i = 0; i < n; i++)
        list[i] = s->texts[s->n_texts - n + i];
    return OK;
}

static enum err dataset_add_skill(struct dataset_pos *a,
                                  const struct json *skill, struct skill *out)
{
    struct str name, description;
    enum err e;

    if (skill->type == JSON_STR) {
        e = dataset_add_text(a, skill->s);
        if (!e)
            out->name = a->set->texts[a->set->n_texts - 1];
        return e;
    }
    if (skill->type != JSON_OBJ)
        return COMPLAIN(a, ERR_BAD_REQUEST, skill,
                        "a skill must be text or an object");
    e = dataset_get_text(a, skill, "name", true, &name);
    if (!e)
        e = dataset_get_text(a, skill, "description", false, &description);
    if (!e)
        e = dataset_add_profile(a, name, description);
    if (!e)
        e = dataset_add_examples(a, skill);
    return e ? e : dataset_keep_skill(a, skill, name, description, out);
}

static enum err dataset_add_skills(struct dataset_pos *a, const struct json *v,
                                   struct eval_agent *agent)
{
    struct json *list;
    struct skill *skills;
    enum err e = dataset_get_list(a, v, "skills", &list);

    if (e || !list)
        return e;
    skills = FAULT("eval.skills")
                 ? NULL
                 : arena_array(&a->set->arena, list->kids.n, sizeof(*skills));
    if (!skills && list->kids.n)
        return dataset_no_memory(a);
    agent->skills = skills;
    for (struct json *k = list->kids.first; k && !e; k = k->next)
        e = dataset_add_skill(a, k, &skills[agent->n_skills++]);
    return e;
}

static enum err dataset_add_keywords(struct dataset_pos *a,
                                     const struct json *v,
                                     struct eval_agent *agent)
{
    const struct json *routing = json_get(v, STR("routing"));
    struct json *from = NULL;
    struct str *list;
    size_t n = 0;
    enum err e = OK;

    if (routing && routing->type != JSON_OBJ)
        return COMPLAIN(a, ERR_BAD_REQUEST, routing,
                        "\"routing\" must be an object");
    if (routing)
        e = dataset_get_list(a, routing, "keywords", &from);
    if (e || !from || !from->kids.n)
        return e;
    list = arena_array(&a->set->arena, from->kids.n, sizeof(*list));
    JSON_EACH(word, from)
    {
        if (word->type != JSON_STR)
            return COMPLAIN(a, ERR_BAD_REQUEST, word, "a keyword must be text");
        if (!list || !dataset_keep_text(a->set, word->s, &list[n++]))
            return dataset_no_memory(a);
    }
    agent->keywords = (struct strs){list, n};
    return OK;
}

static enum err dataset_take_agent(struct dataset_pos *a, const struct json *v)
{
    struct eval_set *s = a->set;
    struct str name, description;
    enum err e = GROW(s, agents, EVAL_AGENTS_MAX);

    if (e)
        return dataset_too_many(a, e, EVAL_AGENTS_MAX, "agents");
    e = dataset_get_text(a, v, "name", true, &name);
    if (!e)
        e = dataset_get_text(a, v, "description", false, &description);
    if (!e && !agent_name_is_valid(name))
        e = COMPLAIN(a, ERR_BAD_REQUEST, json_get(v, STR("name")),
                     "a name must have up to %d letters, digits, '.', '_' and "
                     "'-', and begin with a letter or a digit",
                     AGENT_NAME_MAX);
    if (e)
        return e;
    s->agents[s->n_agents] =
        (struct eval_agent){.line = a->line, .first_text = s->n_texts};
    if (!dataset_keep_text(s, name, &s->agents[s->n_agents].name) ||
        !dataset_keep_text(s, description, &s->agents[s->n_agents].description))
        return dataset_no_memory(a);
    e = dataset_add_profile(a, name, description);
    if (!e)
        e = dataset_add_skills(a, v, &s->agents[s->n_agents]);
    if (!e)
        e = dataset_add_examples(a, v);
    if (!e)
        e = dataset_add_keywords(a, v, &s->agents[s->n_agents]);
    s->n_agents += !e;
    return e;
}

static int dataset_compare_names(const void *a, const void *b)
{
    const struct eval_agent *x = a, *y = b;
    int order = str_cmp_nocase(x->name, y->name);

    return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

static bool name_to_lower(struct str name, char out[AGENT_NAME_MAX],
                          struct str *key)
{
    if (name.n > AGENT_NAME_MAX)
        return false;
    for (size_t i = 0; i < name.n; i++)
        out[i] = str_lower(name.p[i]);
    *key = (struct str){out, name.n};
    return true;
}

static enum err dataset_sort_agents(const struct dataset_pos *a)
{
    struct eval_set *s = a->set;

    qsort(s->agents, s->n_agents, sizeof(*s->agents), dataset_compare_names);
    for (size_t i = 0; i < s->n_agents; i++) {
        char bytes[AGENT_NAME_MAX];
        struct str key;

        if (i && str_eq_nocase(s->agents[i - 1].name, s->agents[i].name))
            return why_err(
                a->why, ERR_BAD_REQUEST,
                "%s:%zu:1: the agent \"%.*s\" is defined already, in "
                "line %zu",
                a->path, s->agents[i].line, STR_ARG(s->agents[i].name),
                s->agents[i - 1].line);
        if (!name_to_lower(s->agents[i].name, bytes, &key) ||
            !dataset_keep_text(s, key, &key) ||
            map_put(&s->by_name, key, &s->agents[i]))
            return dataset_no_memory(a);
    }
    return OK;
}

enum err eval_read_agents(struct eval_set *s, const char *path, struct why *why)
{
    struct dataset_pos a = {s, path, 0, why};
    enum err e = dataset_read_lines(&a, SIZE_MAX, dataset_take_agent);

    return e ? e : dataset_sort_agents(&a);
}

/* Queries and examples. */

const struct eval_agent *eval_find(const struct eval_set *s, struct str name)
{
    char bytes[AGENT_NAME_MAX];
    struct str key;

    return name_to_lower(name, bytes, &key) ? map_get(&s->by_name, key) : NULL;
}

struct str eval_guess(const struct eval_set *s, struct str name)
{
    struct str_guess g = str_guess(name);

    for (size_t i = 0; i < s->n_agents; i++)
        str_guess_offer(&g, s->agents[i].name,
                        str_distance(name, s->agents[i].name));
    return g.name;
}

static enum err dataset_find_agent(const struct dataset_pos *a,
                                   const struct json *v, uint32_t *out)
{
    const struct eval_agent *found;
    struct str guess;

    if (v->type != JSON_STR)
        return COMPLAIN(a, ERR_BAD_REQUEST, v,
                        "the name of an agent must be text");
    found = eval_find(a->set, v->s);
    if (found) {
        *out = (uint32_t)(found - a->set->agents);
        return OK;
    }
    guess = eval_guess(a->set, v->s);
    if (guess.n)
        return COMPLAIN(a, ERR_BAD_REQUEST, v,
                        "there is no agent \"%.*s\"; did you mean \"%.*s\"?",
                        STR_ARG(str_head(v->s, 64)), STR_ARG(guess));
    return COMPLAIN(a, ERR_BAD_REQUEST, v, "there is no agent \"%.*s\"",
                    STR_ARG(str_head(v->s, 64)));
}

static enum err dataset_take_agents(const struct dataset_pos *a,
                                    const struct json *v, struct eval_query *q)
{
    struct json *list;
    enum err e = dataset_get_list(a, v, "agents", &list);
    uint32_t *all;

    if (!e && !list)
        e = COMPLAIN(a, ERR_BAD_REQUEST, v,
                     "has no \"agents\"; [] means that no agent is right");
    if (e || !list->kids.n)
        return e;
    all = arena_array(&a->set->arena, list->kids.n, sizeof(*all));
    if (!all)
        return dataset_no_memory(a);
    JSON_EACH(name, list)
    {
        size_t i = 0;

        e = dataset_find_agent(a, name, &all[q->n_agents]);
        if (e)
            return e;
        /* A repeated name counts once. */
        while (all[i] != all[q->n_agents])
            i++;
        q->n_agents += i == q->n_agents;
    }
    q->agents = all;
    return OK;
}

static enum err dataset_take_level(const struct dataset_pos *a,
                                   const struct json *v, struct eval_query *q)
{
    struct eval_set *s = a->set;
    struct str level;
    enum err e = dataset_get_text(a, v, "level", false, &level);

    q->level = EVAL_NO_LEVEL;
    if (e || !level.n)
        return e;
    for (size_t i = 0; i < s->n_levels; i++)
        if (str_eq(s->levels[i], level)) {
            q->level = (uint32_t)i;
            return OK;
        }
    if (level.n > EVAL_LEVEL_MAX || s->n_levels == EVAL_LEVELS_MAX)
        return COMPLAIN(a, ERR_LIMIT, json_get(v, STR("level")),
                        "there may be up to %d levels of up to %d bytes",
                        EVAL_LEVELS_MAX, EVAL_LEVEL_MAX);
    if (!dataset_keep_text(s, level, &s->levels[s->n_levels]))
        return dataset_no_memory(a);
    q->level = (uint32_t)s->n_levels++;
    return OK;
}

static enum err dataset_take_line(struct dataset_pos *a, const struct json *v,
                                  struct eval_query *q)
{
    struct str text;
    enum err e = dataset_get_text(a, v, "text", true, &text);

    *q = (struct eval_query){.level = EVAL_NO_LEVEL};
    if (!e)
        e = dataset_take_agents(a, v, q);
    if (!e && !dataset_keep_text(a->set, text, &q->text))
        e = dataset_no_memory(a);
    return e;
}

static enum err dataset_take_query(struct dataset_pos *a, const struct json *v)
{
    struct eval_set *s = a->set;
    enum err e = GROW(s, queries, EVAL_QUERIES_MAX);

    if (e)
        return dataset_too_many(a, e, EVAL_QUERIES_MAX, "queries");
    e = dataset_take_line(a, v, &s->queries[s->n_queries]);
    if (!e)
        e = dataset_take_level(a, v, &s->queries[s->n_queries]);
    s->n_queries += !e;
    return e;
}

static enum err dataset_take_example(struct dataset_pos *a,
                                     const struct json *v)
{
    struct eval_set *s = a->set;
    enum err e = GROW(s, examples, EVAL_QUERIES_MAX);

    if (e)
        return dataset_too_many(a, e, EVAL_QUERIES_MAX, "examples");
    e = dataset_take_line(a, v, &s->examples[s->n_examples]);
    s->n_examples += !e;
    return e;
}

enum err eval_read_queries(struct eval_set *s, const char *path, size_t limit,
                           struct why *why)
{
    struct dataset_pos a = {s, path, 0, why};

    return dataset_read_lines(&a, limit, dataset_take_query);
}

enum err eval_read_examples(struct eval_set *s, const char *path,
                            struct why *why)
{
    struct dataset_pos a = {s, path, 0, why};

    return dataset_read_lines(&a, SIZE_MAX, dataset_take_example);
}

bool eval_query_names(const struct eval_query *q, uint32_t agent)
{
    for (size_t i = 0; i < q->n_agents; i++)
        if (q->agents[i] == agent)
            return true;
    return false;
}

struct str *eval_query_texts(const struct eval_query *q, size_t n, size_t max)
{
    struct str *texts = calloc(n + 1, sizeof(*texts));

    for (size_t i = 0; texts && i < n; i++)
        texts[i] = str_head(q[i].text, max);
    return texts;
}

/* Reservoir sampling: the ith example of an agent replaces one of the kept ones
 * with probability k / i. */
void eval_shots(const struct eval_set *s, size_t k, const uint64_t *seed,
                uint32_t *out, uint32_t *n_out)
{
    struct rand_seeded state = {seed ? *seed : 0};
    struct rand rand = rand_seeded(&state);
    uint32_t *seen = n_out; /* cut down to k at the end */

    memset(n_out, 0, s->n_agents * sizeof(*n_out));
    for (size_t i = 0; i < s->n_examples; i++)
        for (size_t j = 0; j < s->examples[i].n_agents; j++) {
            uint32_t agent = s->examples[i].agents[j];
            size_t at = seen[agent]++;

            if (at >= k && seed)
                at = rand_u64(rand) % (at + 1);
            if (at < k)
                out[agent * k + at] = (uint32_t)i;
        }
    for (size_t i = 0; i < s->n_agents; i++)
        if (n_out[i] > k)
            n_out[i] = (uint32_t)k;
}
