/* eval: measures how often the right agent is chosen for labelled queries. No
 * server is needed; the models are those that a server would use. */
#include "lab/eval.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "lab/eval_show.h"

enum { SHOTS_MAX = 1000 };
#define LINES_MAX ((size_t)4 * 1024 * 1024 * 1024)

const struct arg_option cli_eval_options[] = {
    {"agents", "FILE", "the agents, one JSON object a line", false},
    {"mode", "MODE",
     "routing (the default): as messages are routed; vectors: by the mean of "
     "the vectors only, to compare models; or like agent.search: semantic by "
     "vectors, text by words, hybrid by both",
     false},
    {"embedder", "KIND",
     "builtin, table, transformer, minilm or http; default: the configured "
     "one",
     false},
    {"examples", "FILE", "labelled queries that describe the agents", false},
    {"shots", "K", "the number of examples for each agent; default: 5", false},
    {"seed", "NUMBER", "choose them at random, the same for the same number",
     false},
    {"with-own", NULL, "with --examples, use the agents' own texts as well",
     false},
    {"match", "HOW",
     "mean of all texts of an agent (the default), or the best of them", false},
    {"default", "NAME", "routing: the agent for all other messages", false},
    {"learn", "N,N...",
     "routing: measure again after learning from so many outcomes", false},
    {"train", "FILE", "learn from these queries", false},
    {"folds", "K", "split the test into K parts; learn from the others", false},
    {"capture", "HOW",
     "routing: measure how much hostile cards win: stuffed with words, a crowd "
     "of cards, with keywords, or made of users' questions (from --train, else "
     "from half of the test)",
     false},
    {"relation", "HOW",
     "routing: the agents are the platform's (the default), the requester's "
     "own, the org's, rated well by the org, or all strangers",
     false},
    {"limit", "N", "only the first N queries of each file", false},
    {"out", "FILE", "write the result of each query, one JSON object a line",
     false},
    {"by", "WHAT", "agent: show all agents, not only the worst", false},
    {"config", "FILE", "read this file instead of signalbox.jsonc", false},
    {"data", "FOLDER", "the data folder", false},
    {"set", "NAME=VALUE", "any one setting; may be repeated", true},
    {0},
};

/* The command line. */
struct eval_options {
    struct eval_plan plan;
    int64_t shots, limit, seed;
    uint64_t seed_value;
    bool is_by_agent;
    const char *out; /* NULL: none */
};

static bool eval_find_kind(struct str name, enum embed_kind *out)
{
    for (int k = 0; k < N_EMBED_KINDS; k++)
        if (str_eq(name, str_of(embed_kind_name((enum embed_kind)k)))) {
            *out = (enum embed_kind)k;
            return true;
        }
    return false;
}

enum exit_status eval_read_embedder(struct cli *c, struct eval_plan *p)
{
    struct str kind = args_get(&c->args, "embedder");

    p->kind = (enum embed_kind)p->config->embed.kind;
    if (str_eq(kind, STR("cascade")))
        return cli_error(
            c, ERR_USAGE,
            "--embedder cascade was removed: builtin runs a second "
            "model by itself where the first is unsure");
    if (kind.n && !eval_find_kind(kind, &p->kind))
        return cli_error(c, ERR_USAGE,
                         "--embedder is \"%.*s\"; it must be builtin, table, "
                         "transformer, minilm or http",
                         STR_ARG(str_head(kind, 64)));
    return EXIT_DONE;
}

static enum exit_status eval_read_shots(struct cli *c, struct eval_options *w)
{
    enum exit_status status;

    if (!cli_number(c, "shots", 1, SHOTS_MAX, 5, &w->shots, &status) ||
        !cli_number(c, "seed", 0, INT64_MAX, 0, &w->seed, &status) ||
        !cli_number(c, "limit", 1, EVAL_QUERIES_MAX, EVAL_QUERIES_MAX + 1,
                    &w->limit, &status))
        return status;
    if (!args_has(&c->args, "examples")) {
        if (args_has(&c->args, "shots") || args_has(&c->args, "with-own"))
            return cli_error(c, ERR_USAGE,
                             "--shots and --with-own need --examples FILE");
        if (args_has(&c->args, "seed") && !args_has(&c->args, "learn"))
            return cli_error(c, ERR_USAGE,
                             "--seed needs --examples FILE or --learn");
        return EXIT_DONE;
    }
    w->plan.has_own = args_has(&c->args, "with-own");
    w->plan.shots = (size_t)w->shots;
    w->seed_value = (uint64_t)w->seed;
    if (args_has(&c->args, "seed"))
        w->plan.seed = &w->seed_value;
    return EXIT_DONE;
}

/* Rejects options of other modes. */
static enum exit_status eval_check_mode(struct cli *c, enum eval_mode mode)
{
    static const struct {
        const char *option;
        enum eval_mode mode;
    } only[] = {
        {"match", EVAL_VECTORS},   {"with-own", EVAL_VECTORS},
        {"default", EVAL_ROUTING}, {"learn", EVAL_ROUTING},
        {"train", EVAL_ROUTING},   {"folds", EVAL_ROUTING},
        {"capture", EVAL_ROUTING}, {"relation", EVAL_ROUTING},
    };

    for (size_t i = 0; i < sizeof(only) / sizeof(only[0]); i++)
        if (args_has(&c->args, only[i].option) && mode != only[i].mode)
            return cli_error(c, ERR_USAGE, "--%s is for --mode %s",
                             only[i].option, eval_mode_name(only[i].mode));
    if (args_has(&c->args, "examples") && mode > EVAL_VECTORS)
        return cli_error(c, ERR_USAGE,
                         "--examples is for --mode routing and vectors");
    if (mode == EVAL_TEXT && args_has(&c->args, "embedder"))
        return cli_error(c, ERR_USAGE,
                         "--mode text uses only words: leave --embedder out");
    return EXIT_DONE;
}

static enum exit_status eval_read_mode(struct cli *c, struct eval_plan *p)
{
    struct str mode = args_get(&c->args, "mode");

    p->mode = EVAL_ROUTING;
    while (mode.n && !str_eq(mode, str_of(eval_mode_name(p->mode))))
        if (p->mode++ == EVAL_HYBRID)
            return cli_error(c, ERR_USAGE,
                             "--mode is \"%.*s\"; it must be routing, "
                             "vectors, semantic, text or hybrid",
                             STR_ARG(str_head(mode, 64)));
    return eval_check_mode(c, p->mode);
}

enum exit_status eval_read_checkpoints(struct cli *c, struct eval_plan *p)
{
    struct str rest = args_get(&c->args, "learn");
    int64_t before = 0;

    while (rest.n) {
        struct str one = str_cut(&rest, ',');
        int64_t n;

        if (str_to_i64(one, &n) || n <= before || n > EVAL_QUERIES_MAX ||
            p->n_checkpoints == EVAL_CHECKPOINTS_MAX)
            return cli_error(c, ERR_USAGE,
                             "--learn is up to %d numbers from 1 to %d, each "
                             "more than the one before: 500,2000,5000",
                             EVAL_CHECKPOINTS_MAX, EVAL_QUERIES_MAX);
        p->checkpoints[p->n_checkpoints++] = (size_t)n;
        before = n;
    }
    return EXIT_DONE;
}

static enum exit_status eval_read_learning(struct cli *c,
                                           struct eval_options *w)
{
    bool has_train = args_has(&c->args, "train");
    bool has_folds = args_has(&c->args, "folds");
    struct str capture = STR(""), relation = STR("");
    enum exit_status status;
    int64_t folds;

    if (!cli_number(c, "folds", 2, EVAL_FOLDS_MAX, 0, &folds, &status) ||
        !cli_one_of(c, "capture", cli_words("eval", "capture"), &capture,
                    &status) ||
        !cli_one_of(c, "relation", cli_words("eval", "relation"), &relation,
                    &status))
        return status;
    w->plan.default_agent = args_get(&c->args, "default");
    w->plan.folds = has_folds ? (size_t)folds : 0;
    w->plan.order = (uint64_t)w->seed;
    if (capture.n)
        w->plan.capture = str_eq(capture, STR("crowd"))      ? EVAL_CROWD
                          : str_eq(capture, STR("stuffed"))  ? EVAL_STUFFED
                          : str_eq(capture, STR("keywords")) ? EVAL_KEYWORDS
                                                             : EVAL_QUESTIONS;
    while (relation.n &&
           !str_eq(relation, str_of(eval_relation_name(w->plan.relation))))
        w->plan.relation++;
    if (!args_has(&c->args, "learn"))
        return (has_train && w->plan.capture != EVAL_QUESTIONS) || has_folds
                   ? cli_error(c, ERR_USAGE, "--train and --folds need --learn")
                   : EXIT_DONE;
    if (has_train == has_folds)
        return cli_error(c, ERR_USAGE,
                         "--learn needs queries to learn from: --train FILE "
                         "or --folds K");
    if (has_train && args_has(&c->args, "examples"))
        return cli_error(c, ERR_USAGE,
                         "--train and --examples exclude each other");
    return eval_read_checkpoints(c, &w->plan);
}

static enum exit_status eval_read_options(struct cli *c, struct eval_options *w)
{
    struct str by = args_get(&c->args, "by");
    struct str match = args_get(&c->args, "match");
    enum exit_status status;

    if (!args_has(&c->args, "agents") || !c->args.n_operands)
        return cli_error(c, ERR_USAGE,
                         "agents and queries are missing: signalbox eval "
                         "--agents A.jsonl TEST.jsonl");
    if (by.n && !str_eq(by, STR("agent")))
        return cli_error(c, ERR_USAGE, "--by is \"%.*s\"; it must be agent",
                         STR_ARG(str_head(by, 64)));
    w->plan.is_best = str_eq(match, STR("best"));
    if (match.n && !w->plan.is_best && !str_eq(match, STR("mean")))
        return cli_error(c, ERR_USAGE,
                         "--match is \"%.*s\"; it must be mean or best",
                         STR_ARG(str_head(match, 64)));
    w->is_by_agent = by.n > 0;
    w->out = args_get(&c->args, "out").p;
    status = eval_read_mode(c, &w->plan);
    if (!status)
        status = eval_read_embedder(c, &w->plan);
    if (!status)
        status = eval_read_shots(c, w);
    return status ? status : eval_read_learning(c, w);
}

static enum err eval_read_set(struct cli *c, const struct eval_options *w,
                              struct eval_set *s, struct why *why)
{
    enum err e = eval_read_agents(s, args_get(&c->args, "agents").p, why);

    for (size_t i = 0; i < c->args.n_operands && !e; i++)
        e = eval_read_queries(s, c->args.operands[i].p, (size_t)w->limit, why);
    if (!e && w->plan.shots)
        e = eval_read_examples(s, args_get(&c->args, "examples").p, why);
    if (!e && args_has(&c->args, "train"))
        e = eval_read_examples(s, args_get(&c->args, "train").p, why);
    if (!e && w->plan.folds > s->n_queries)
        e = why_err(why, ERR_USAGE, "--folds is %zu, and there are %zu queries",
                    w->plan.folds, s->n_queries);
    return e;
}

static bool file_is_same(const struct stat *out, struct str path)
{
    struct stat st;

    return path.n && stat(path.p, &st) == 0 && st.st_dev == out->st_dev &&
           st.st_ino == out->st_ino;
}

/* The results must not replace an input file, by whatever name. A terminal may
 * be both. */
static enum err eval_check_out(const struct args *a, int fd, const char *path,
                               struct why *why)
{
    static const char *const names[] = {"agents", "examples", "train",
                                        "config"};
    struct stat st;
    bool is_read = false;

    if (fstat(fd, &st) != 0)
        return why_err(why, ERR_IO, "cannot read the state of %s: %s", path,
                       strerror(errno));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        is_read = is_read || file_is_same(&st, args_get(a, names[i]));
    for (size_t i = 0; i < a->n_operands; i++)
        is_read = is_read || file_is_same(&st, a->operands[i]);
    if (!is_read || !S_ISREG(st.st_mode))
        return OK;
    return why_err(why, ERR_USAGE,
                   "--out %s is one of the input files: choose another, or the "
                   "results would replace it",
                   path);
}

static bool eval_write_all(int fd, struct str rest)
{
    while (rest.n) {
        ssize_t n = write(fd, rest.p, rest.n);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        rest = str_sub(rest, (size_t)n, rest.n);
    }
    return true;
}

static enum err eval_write_out(int fd, const struct eval_options *w,
                               const struct eval_view *v, struct why *why)
{
    struct buf lines;
    bool is_good;

    buf_init(&lines, LINES_MAX);
    eval_add_lines(&lines, v);
    if (lines.over) {
        buf_fini(&lines);
        return why_err(why, ERR_NOMEM, "out of memory");
    }
    /* /dev/stdout and the like cannot be truncated. */
    is_good = (ftruncate(fd, 0) == 0 || errno == EINVAL) &&
              eval_write_all(fd, buf_str(&lines));
    buf_fini(&lines);
    return is_good ? OK
                   : why_err(why, ERR_IO, "cannot write %s: %s", w->out,
                             strerror(errno));
}

static enum err eval_evaluate(struct cli *c, const struct eval_options *w,
                              int out_fd, struct why *why)
{
    struct eval_score score;
    struct eval_run run;
    struct eval_view v = {&w->plan, &run, &score, w->is_by_agent};
    enum err e = eval_run(c, &w->plan, &run, why);

    if (e)
        return e;
    e = eval_score(run.outcomes, w->plan.set->n_queries, w->plan.set->n_agents,
                   &score);
    if (e)
        why_err(why, e, "out of memory");
    else if (w->out)
        e = eval_write_out(out_fd, w, &v, why);
    if (!e && c->json)
        eval_show_as_json(c, &v);
    else if (!e)
        eval_show(c, &v);
    eval_score_fini(&score);
    eval_run_fini(&run);
    return e;
}

static enum exit_status eval_read_and_evaluate(struct cli *c,
                                               struct eval_options *w)
{
    struct why why = {""};
    struct eval_set set;
    int fd = -1;
    enum err e;

    eval_set_init(&set);
    w->plan.set = &set;
    e = eval_read_set(c, w, &set, &why);
    /* Opened before the work begins. The old content stays until the results
     * are written. */
    if (!e && w->out &&
        (fd = open(w->out, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) < 0)
        e = why_err(&why, ERR_IO, "cannot write %s: %s", w->out,
                    strerror(errno));
    if (fd >= 0)
        e = eval_check_out(&c->args, fd, w->out, &why);
    if (!e)
        e = eval_evaluate(c, w, fd, &why);
    if (fd >= 0 && close(fd) < 0 && !e)
        e = why_err(&why, ERR_IO, "cannot write %s: %s", w->out,
                    strerror(errno));
    eval_set_fini(&set);
    return e ? cli_error(c, e, "%s", why.text) : EXIT_DONE;
}

struct config *eval_config(struct cli *c, enum exit_status *status)
{
    struct config_report report;
    struct config_source src;
    struct config *config;

    cli_source(c, &src);
    config = config_load(&src, &report);
    if (config)
        return config;
    *status = cli_bad_config(c, &report);
    return NULL;
}

enum exit_status cli_eval(struct cli *c)
{
    struct eval_options w = {.is_by_agent = false};
    enum exit_status status = EXIT_FAILED;
    struct config *config = eval_config(c, &status);

    if (!config)
        return status;
    w.plan.config = config;
    status = eval_read_options(c, &w);
    if (!status)
        status = eval_read_and_evaluate(c, &w);
    config_free(config);
    return status;
}
