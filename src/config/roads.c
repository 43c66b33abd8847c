/* What agents are made of: how `process`, `model` and `workspace` of an entry
 * become its url and a definition, and whether whatever is named is there.
 *
 *     url              as it is, and the others are not used
 *     process: NAME    process:NAME; with a workspace or model beside it, a
 *                      definition of the agent's own, made of that one
 *     process: {…}     a definition of the agent's own, called as it is
 *     model: NAME      model:NAME
 *     model: NAME,     without such an entry of models: a definition of the
 *     workspace: DIR   agent's own, pi from the PATH with that model
 *     none of them     it connects by itself
 *
 * An entry's own word comes before that of the defaults, but a model beside the
 * process of the defaults is that process's model: so a list of agents with a
 * workspace and a model each is a list of programs of one kind.
 *
 * Definitions of agents' own stand among the others from here on, and whoever
 * prints the configuration sees them there. Turned down: keeping them with the
 * agents. Delivery looks them up by name, and a reload replaces all at once. */
#include <stdio.h>

#include "config/internal.h"
#include "model/card.h"

enum { PATH_BYTES = 96, PI_BLOCK_BYTES = 1024 };

/* The process or model that an agent names, and where. Not the agent's own
 * url: after an error agents are not kept. */
struct road_ref {
    struct place at;
    const char *member;   /* "url" or "model"; NULL: nothing */
    struct agent_url url; /* points into what was written */
};

/* One member of an entry, or of the defaults where it has none. */
struct said {
    const struct json *v; /* NULL: nobody says it */
    struct place at;
    bool is_own;
};

static const struct json *unless_null(const struct json *v)
{
    return v && v->type != JSON_NULL ? v : NULL;
}

static struct said look(const struct entry *e, const char *member)
{
    const struct json *own = json_get(e->v, str_of(member));
    struct said s = {.at = own ? e->at : e->defaults_at, .is_own = own != NULL};

    s.v = unless_null(own ? own : json_get(e->defaults, str_of(member)));
    if (s.v)
        s.at.at = s.at.key_at = s.v->at;
    return s;
}

static void path_of(const struct entry *e, const struct said *s,
                    const char *member, char out[PATH_BYTES])
{
    if (s->is_own)
        snprintf(out, PATH_BYTES, "agents.list[%zu].%s", e->i, member);
    else
        snprintf(out, PATH_BYTES, "agents.defaults.%s", member);
}

/* Names. */

static const struct process_def *find_process(const struct config *c,
                                              struct str name)
{
    for (size_t i = 0; i < c->processes.n; i++)
        if (str_eq_nocase(c->processes.list[i].name, name))
            return &c->processes.list[i];
    return NULL;
}

static const struct model_def *find_model(const struct config *c,
                                          struct str name)
{
    for (size_t i = 0; i < c->models.n; i++)
        if (str_eq(c->models.list[i].name, name))
            return &c->models.list[i];
    return NULL;
}

static void no_process(struct load *l, struct place at, const char *path,
                       struct str name)
{
    struct str_guess g = str_guess(name);

    for (size_t i = 0; i < l->c->processes.n; i++)
        str_guess_offer(&g, l->c->processes.list[i].name,
                        str_distance(name, l->c->processes.list[i].name));
    report_error(&l->report, at,
                 "%s names the process %s, and processes has none of that "
                 "name%s%.*s%s",
                 path, quote(name).text, g.name.n ? "; did you mean \"" : "",
                 STR_ARG(g.name), g.name.n ? "\"?" : "");
}

static void no_model(struct load *l, struct place at, const char *path,
                     struct str name)
{
    struct str rest = name, head = str_cut(&rest, '/');
    struct str_guess g = str_guess(head);

    for (size_t i = 0; i < l->c->models.n; i++) {
        struct str other = l->c->models.list[i].name;

        str_guess_offer(&g, other, str_distance(head, other));
        str_guess_offer(&g, other, str_distance(name, other));
    }
    report_error(&l->report, at,
                 "%s names the model %s, and models has neither that nor "
                 "\"%.*s\"%s%.*s%s",
                 path, quote(name).text, STR_ARG(str_head(head, QUOTED_MAX)),
                 g.name.n ? "; did you mean \""
                          : "; with a workspace beside it, pi would run it",
                 STR_ARG(g.name), g.name.n ? "\"?" : "");
}

/* Values. */

/* "process:code" in the configuration's memory. */
static void set_url(struct load *l, struct place at, struct agent *a,
                    const char *head, struct str name)
{
    size_t n = strlen(head) + name.n;
    char *p = arena_alloc(&l->c->arena, n + 1);

    if (!p) {
        report_no_memory(&l->report, at);
        return;
    }
    snprintf(p, n + 1, "%s%.*s", head, STR_ARG(name));
    a->url = (struct str){p, n};
}

/* A text of the entry into *out, if there is one; `is_path`: of a folder. */
static void read_text(struct load *l, const struct said *s, const char *path,
                      bool is_path, struct str *out)
{
    struct str text;
    char *copy;

    if (s->v->type != JSON_STR || !s->v->s.n || s->v->s.n > SETTING_STR_MAX ||
        memchr(s->v->s.p, 0, s->v->s.n)) {
        report_error(&l->report, s->at, "%s must be %s, not %s", path,
                     is_path ? "the path of a folder" : "the name of a model",
                     value_words(s->v).text);
        return;
    }
    text = s->v->s;
    if (is_path && !load_path(l, s->at, &text))
        return;
    copy = arena_strdup(&l->c->arena, text);
    if (copy)
        *out = (struct str){copy, text.n};
    else
        report_no_memory(&l->report, s->at);
}

/* Whether what stands beside a process counts: an entry's own word always, that
 * of the defaults where the definition has none. */
static bool counts(const struct said *s, struct str before)
{
    return s->v && (s->is_own || !before.n);
}

static void not_used(struct load *l, const struct entry *e, const char *member,
                     const char *because)
{
    struct said s = look(e, member);

    if (s.v && s.is_own)
        report_warning(&l->report, s.at, "agents.list[%zu].%s is not used: %s",
                       e->i, member, because);
}

/* Programs. */

static void refer(struct load *l, const struct entry *e, const struct said *s,
                  const char *member, struct agent_url url)
{
    l->roads[e->i] =
        (struct road_ref){.at = s->at, .member = member, .url = url};
}

static void read_block(struct load *l, const struct entry *e,
                       const struct said *s, const char *path,
                       struct process_def *out)
{
    const struct json *under =
        s->is_own ? json_get(e->defaults, STR("process")) : NULL;
    const struct json *v = s->v;
    struct place at = s->at;

    if (under && under->type == JSON_OBJ)
        v = card_merge(&l->scratch, under, s->v);
    at.inside = str_of(path);
    if (v)
        load_object(l, process_elements.table, out, at, v);
    else
        report_no_memory(&l->report, at);
}

/* It is the agent's own: with its workspace and model, called as it is. */
static void keep_own(struct load *l, const struct entry *e,
                     const struct said *s, struct agent *a,
                     struct process_def *d)
{
    struct process_def *to = l->own_processes;
    char *name = arena_strdup(&l->c->arena, a->name); /* its own may go */

    if (!name) {
        report_no_memory(&l->report, s->at);
        return;
    }
    if (find_process(l->c, a->name)) {
        report_error(&l->report, s->at,
                     "agents.list[%zu] needs a definition of its own, and "
                     "processes has one that is called %s too; call that one "
                     "something else",
                     e->i, quote(a->name).text);
        return;
    }
    if (l->c->processes.n == ROADS_MAX) {
        report_error(&l->report, s->at,
                     "there may be up to %d processes, those of agents' own "
                     "included",
                     ROADS_MAX);
        return;
    }
    d->name = (struct str){name, a->name.n};
    to[l->c->processes.n++] = *d;
    set_url(l, s->at, a, "process:", a->name);
}

static void lay_beside(struct load *l, const struct entry *e,
                       struct process_def *d)
{
    struct said workspace = look(e, "workspace"), model = look(e, "model");
    char path[PATH_BYTES];

    if (counts(&workspace, d->workspace)) {
        path_of(e, &workspace, "workspace", path);
        read_text(l, &workspace, path, true, &d->workspace);
    }
    if (d->dialect != DIALECT_PI) {
        not_used(l, e, "model", "its process does not speak pi");
    } else if (counts(&model, d->model)) {
        path_of(e, &model, "model", path);
        read_text(l, &model, path, false, &d->model);
    }
}

static void road_process(struct load *l, const struct entry *e,
                         const struct said *s, struct agent *a)
{
    unsigned n_errors = l->report.out->n_errors;
    struct process_def d = {.min = 0};
    const struct process_def *named = NULL;
    struct process_def before;
    char path[PATH_BYTES];

    path_of(e, s, "process", path);
    if (s->v->type == JSON_STR) {
        named = find_process(l->c, s->v->s);
        if (named && named >= l->own_processes + l->n_processes)
            named = NULL; /* another agent's own */
        if (named)
            d = *named;
        else if (!l->has_bad_roads)
            no_process(l, s->at, path, s->v->s);
    } else if (s->v->type == JSON_OBJ) {
        read_block(l, e, s, path, &d);
    } else {
        report_error(&l->report, s->at,
                     "%s must be an object or the name of one of processes, "
                     "not %s",
                     path, value_words(s->v).text);
    }
    if (l->report.out->n_errors > n_errors || (!named && !d.command.n))
        return;
    before = d;
    lay_beside(l, e, &d);
    if (l->report.out->n_errors > n_errors)
        return;
    if (named && str_eq(before.workspace, d.workspace) &&
        str_eq(before.model, d.model))
        set_url(l, s->at, a, "process:", named->name);
    else
        keep_own(l, e, s, a, &d);
}

/* pi. */

static bool is_letter(char c)
{
    return str_lower(c) >= 'a' && str_lower(c) <= 'z';
}

static char upper_or_bar(char c)
{
    if (is_letter(c))
        return (char)(str_lower(c) - 'a' + 'A');
    return c >= '0' && c <= '9' ? c : '_';
}

static void put_variable(struct json_out *o, struct str head, const char *tail)
{
    char name[96];

    snprintf(name, sizeof(name), "%.*s%s", STR_ARG(head), tail);
    json_put_str(o, str_of(name));
}

/* The variables in which it looks for the key of that provider, and those by
 * which it is told where its own files are. */
static void put_pi_variables(struct json_out *o, struct str model)
{
    struct str rest = model, provider = str_head(str_cut(&rest, '/'), 64);
    char name[64];

    json_put_str(o, STR("PI_CODING_AGENT_DIR"));
    json_put_str(o, STR("PI_OFFLINE"));
    if (!rest.n || !provider.n || !is_letter(provider.p[0]))
        return;
    if (str_eq(provider, STR("google")))
        provider = STR("gemini");
    for (size_t i = 0; i < provider.n; i++)
        name[i] = upper_or_bar(provider.p[i]);
    put_variable(o, (struct str){name, provider.n}, "_API_KEY");
    put_variable(o, (struct str){name, provider.n}, "_OAUTH_TOKEN");
}

/* What somebody would write as `process` who runs pi as it comes. */
static const struct json *pi_block(struct load *l, struct str model)
{
    struct buf text;
    struct json_out o;
    char *kept;

    buf_init(&text, PI_BLOCK_BYTES);
    o = json_out(&text);
    json_open(&o, '{');
    json_key(&o, STR("command"));
    json_put_raw(&o, STR("[\"pi\",\"--mode\",\"rpc\",\"--no-session\"]"));
    json_member_text(&o, "dialect", STR("pi"));
    json_key(&o, STR("envAllowed"));
    json_open(&o, '[');
    put_pi_variables(&o, model);
    json_close(&o, ']');
    json_close(&o, '}');
    kept = text.over ? NULL : arena_strdup(&l->scratch, buf_str(&text));
    buf_fini(&text);
    return kept ? json_parse(&l->scratch, str_of(kept), 0, NULL) : NULL;
}

/* It says how it is run: in a folder, with a model that is none of ours. */
static bool is_pis(const struct load *l, const struct entry *e,
                   const struct said *model)
{
    struct str ignored;

    return look(e, "workspace").v && model->v->type == JSON_STR &&
           model->v->s.n && !l->has_bad_roads &&
           !model_def_find(l->c->models.list, l->c->models.n, model->v->s,
                           &ignored);
}

static void road_pi(struct load *l, const struct entry *e, const struct said *s,
                    struct agent *a)
{
    unsigned n_errors = l->report.out->n_errors;
    const struct json *block = pi_block(l, s->v->s);
    struct process_def d = {.min = 0};

    if (block)
        load_object(l, process_elements.table, &d, s->at, block);
    else
        report_no_memory(&l->report, s->at);
    if (l->report.out->n_errors == n_errors)
        lay_beside(l, e, &d);
    if (l->report.out->n_errors == n_errors)
        keep_own(l, e, s, a, &d);
}

/* Models. */

static void road_model(struct load *l, const struct entry *e,
                       const struct said *s, struct agent *a)
{
    struct str name = {0};
    struct agent_url url;
    char path[PATH_BYTES];
    struct why why;

    path_of(e, s, "model", path);
    read_text(l, s, path, false, &name);
    if (!name.n)
        return;
    set_url(l, s->at, a, "model:", name);
    if (agent_url_read(a->url, &url, &why))
        report_error(&l->report, s->at, "%s %s", path, why.text);
    else
        refer(l, e, s, "model",
              (struct agent_url){.road = ROAD_MODEL, .id = s->v->s});
    not_used(l, e, "workspace", "a model works in no folder");
}

void load_road(struct load *l, const struct entry *e, struct agent *a)
{
    struct said url = look(e, "url"), process = look(e, "process"),
                model = look(e, "model");
    bool has_own = (process.v && process.is_own) || (model.v && model.is_own);
    struct agent_url read;

    if (url.v && (url.is_own || !has_own)) {
        if (agent_url_read(json_str_or(url.v, STR("")), &read, NULL) == OK)
            refer(l, e, &url, "url", read);
        not_used(l, e, "process", "url says how it is reached");
        not_used(l, e, "model", "url says how it is reached");
        not_used(l, e, "workspace", "url says how it is reached");
    } else if (process.v) {
        road_process(l, e, &process, a);
    } else if (model.v && is_pis(l, e, &model)) {
        road_pi(l, e, &model, a);
    } else if (model.v) {
        road_model(l, e, &model, a);
    } else {
        not_used(l, e, "workspace", "it has no process");
    }
}

/* Before and after all of them. */

/* Once, and not once for each agent. What is missing an entry may have. */
static void check_defaults(struct load *l, const struct json *defaults,
                           struct place at)
{
    const struct json *v = unless_null(json_get(defaults, STR("process")));
    struct process_def ignored = {.min = 0};

    if (!v)
        return;
    at.at = at.key_at = v->at;
    at.inside = STR("agents.defaults.process");
    if (v->type == JSON_OBJ)
        load_walk(l, process_elements.table, &ignored, (struct str){0}, at, v);
}

static void check_text(struct load *l, const struct json *defaults,
                       struct place at, const char *member)
{
    const struct json *v = unless_null(json_get(defaults, str_of(member)));

    if (!v || v->type == JSON_STR)
        return;
    at.at = v->at;
    report_error(&l->report, at, "agents.defaults.%s must be a text, not %s",
                 member, value_words(v).text);
}

bool load_roads_begin(struct load *l, const struct json *defaults,
                      struct place at, size_t n)
{
    unsigned n_errors = l->report.out->n_errors;
    size_t n_given = l->c->processes.n;

    if (defaults) {
        check_defaults(l, defaults, at);
        check_text(l, defaults, at, "model");
        check_text(l, defaults, at, "workspace");
    }
    l->roads = arena_array(&l->scratch, n + 1, sizeof(*l->roads));
    l->own_processes =
        arena_array(&l->c->arena, n_given + n + 1, sizeof(*l->own_processes));
    if (!l->roads || !l->own_processes) {
        report_no_memory(&l->report, at);
        return false;
    }
    if (n_given)
        memcpy(l->own_processes, l->c->processes.list,
               n_given * sizeof(*l->own_processes));
    l->c->processes.list = l->own_processes;
    l->n_processes = n_given;
    return l->report.out->n_errors == n_errors;
}

static void check_model(struct load *l, struct place at, const char *path,
                        struct str name)
{
    const struct model_def *d = find_model(l->c, name);
    struct str rest = name, head = str_cut(&rest, '/');

    if (d && !d->model.n)
        report_error(&l->report, at,
                     "%s names the model %s, which has no \"model\": give it "
                     "one, or write \"%.*s/MODEL\" here",
                     path, quote(name).text, STR_ARG(name));
    else if (!d && (!rest.n || !find_model(l->c, head)))
        no_model(l, at, path, name);
}

static void check_refs(struct load *l)
{
    for (size_t i = 0; i < l->c->agents.n; i++) {
        struct road_ref ref = l->roads[i];
        char path[PATH_BYTES];

        if (!ref.member)
            continue;
        snprintf(path, sizeof(path), "agents.list[%zu].%s", i, ref.member);
        if (ref.url.road == ROAD_PROCESS && !find_process(l->c, ref.url.id))
            no_process(l, ref.at, path, ref.url.id);
        else if (ref.url.road == ROAD_MODEL)
            check_model(l, ref.at, path, ref.url.id);
    }
}

void load_roads_end(struct load *l)
{
    if (l->roads && !l->has_bad_roads)
        check_refs(l);
}
