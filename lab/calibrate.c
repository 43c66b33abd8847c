/* calibrate: proposes routing.threshold from labelled queries, which are routed
 * like messages; with --weights, also the weights of the signals. Every query
 * is decided with "auto" too, to compare the proposed number with the default,
 * which needs no labels. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "lab/calib.h"
#include "lab/eval.h"
#include "lab/eval_route.h"
#include "lab/eval_show.h"
#include "lab/plot.h"
#include "server/settings.h"

enum { CURVE = 61, FOLDS = 5 };

const struct arg_option cli_calibrate_options[] = {
    {"agents", "FILE", "the agents, one JSON object a line", false},
    {"weights", NULL, "also propose weights of the four signals", false},
    {"train", "FILE", "learn from these queries first", false},
    {"learn", "N", "learn from N of them; default: all", false},
    {"default", "NAME", "the agent for all other messages while it learns",
     false},
    {"folds", "K", "parts of the cross-validation; default: 5", false},
    {"seed", "NUMBER", "the seed of the random order", false},
    {"embedder", "KIND",
     "builtin, table, transformer, minilm or http; default: the configured "
     "one",
     false},
    {"limit", "N", "only the first N queries of each file", false},
    {"config", "FILE", "read this file instead of signalbox.jsonc", false},
    {"data", "FOLDER", "the data folder", false},
    {"set", "NAME=VALUE", "any one setting; may be repeated", true},
    {0},
};

struct calibration {
    struct cli *cli;
    struct eval_plan plan;
    struct eval_set set;
    struct eval_run run;
    struct eval_route route;
    bool is_free;
    int64_t limit, folds, seed;
    uint32_t *order; /* of the queries */
    struct calib_query *queries;
    struct calib_candidate *candidates;
    size_t n_candidates;
    struct signal_weights weights; /* of the configuration */
    double threshold;
    bool is_auto; /* it is not a number */
    struct calib_result result;
    struct calib_figures before;               /* with the configured ones */
    struct choose_settings by_number, by_auto; /* their scores differ */
    struct eval_bands at_auto; /* the same queries with "auto" */
    struct why why;
};

static enum err calibrate_no_memory(struct calibration *k)
{
    return why_err(&k->why, ERR_NOMEM, "out of memory");
}

/* The signals. */

/* Decides by these rules instead of the configured ones. */
static enum err calibrate_decide_by(struct calibration *k,
                                    const struct choose_settings *by,
                                    uint32_t number, int64_t now_ms,
                                    struct eval_choice *out)
{
    struct choose_settings *own = eval_fleet_settings(k->route.fleet);
    struct choose_settings configured = *own;
    enum err e;

    own->is_auto = by->is_auto;
    own->is_centred = by->is_centred;
    e = eval_fleet_decide(k->route.fleet,
                          eval_head(k->set.queries[number].text),
                          eval_vector(&k->route.queries, number), now_ms, out);
    *own = configured;
    return e ? calibrate_no_memory(k) : OK;
}

static enum err calibrate_collect(struct calibration *k, uint32_t number,
                                  unsigned fold, int64_t now_ms)
{
    const struct eval_query *q = &k->set.queries[number];
    struct eval_outcome outcome = {.expected = q->agents,
                                   .n_expected = q->n_agents};
    struct eval_decided decided;
    struct eval_choice c;
    enum err e = calibrate_decide_by(k, &k->by_auto, number, now_ms, &c);

    if (e)
        return e;
    outcome.ranked = eval_ranked_of(&c);
    decided = (struct eval_decided){c.band, c.agent, c.is_unsure};
    eval_bands_count(&k->at_auto, &outcome, &decided);
    e = calibrate_decide_by(k, &k->by_number, number, now_ms, &c);
    if (e)
        return e;
    k->queries[number] = (struct calib_query){.first = k->n_candidates,
                                              .n = c.n,
                                              .is_out = !q->n_agents,
                                              .fold = fold};
    for (size_t i = 0; i < c.n; i++) {
        const struct signals *s = &c.best[i].signals;

        k->candidates[k->n_candidates++] = (struct calib_candidate){
            .agent = c.best[i].agent,
            .is_right = eval_query_names(q, c.best[i].agent),
            .semantic = s->semantic,
            .performance = s->performance,
            .keyword = s->keyword,
            .recency = s->recency};
    }
    return OK;
}

/* All parts with what was learnt from a file, if there is one. */
static enum err calibrate_collect_alike(struct calibration *k)
{
    struct eval_stream s = {.queries = k->set.examples,
                            .vectors = &k->route.examples,
                            .n = k->set.n_examples,
                            .now_ms = EVAL_BEGIN_MS};
    uint32_t *order = mem_array(s.n, sizeof(*order));
    size_t n = k->set.n_queries;
    enum err e = OK;

    if (s.n)
        e = eval_route_embed_examples(&k->route);
    if (!e && s.n) {
        eval_shuffle(order, s.n, (uint64_t)k->seed);
        s.order = order;
        e = eval_stream_to(&k->route, &s,
                           k->plan.n_checkpoints ? k->plan.checkpoints[0]
                                                 : s.n);
    }
    for (size_t i = 0; i < n && !e; i++)
        e = calibrate_collect(k, k->order[i],
                              (unsigned)(i * (size_t)k->folds / n), s.now_ms);
    free(order);
    return e == ERR_NOMEM ? calibrate_no_memory(k) : e;
}

/* Each part with what was learnt from the others; without learning, performance
 * and recency would have no information. */
static enum err calibrate_collect_apart(struct calibration *k)
{
    size_t n = k->set.n_queries, folds = (size_t)k->folds;
    uint32_t *order = mem_array(n, sizeof(*order));
    enum err e = OK;

    for (size_t i = 0; i < folds && !e; i++) {
        size_t from = n * i / folds, to = n * (i + 1) / folds;
        struct eval_stream s = {.queries = k->set.queries,
                                .vectors = &k->route.queries,
                                .order = order,
                                .n = n - (to - from),
                                .now_ms = EVAL_BEGIN_MS};

        memcpy(order, k->order, from * sizeof(*order));
        memcpy(order + from, k->order + to, (n - to) * sizeof(*order));
        eval_fleet_forget(k->route.fleet);
        e = eval_stream_to(&k->route, &s, s.n);
        for (size_t at = from; at < to && !e; at++)
            e = calibrate_collect(k, k->order[at], (unsigned)i, s.now_ms);
    }
    free(order);
    return e == ERR_NOMEM ? calibrate_no_memory(k) : e;
}

static struct calib_set calibrate_set(const struct calibration *k)
{
    return (struct calib_set){.queries = k->queries,
                              .n = k->set.n_queries,
                              .candidates = k->candidates,
                              .folds = (unsigned)k->folds};
}

static enum err calibrate_run(struct calibration *k)
{
    size_t n = k->set.n_queries;
    const struct choose_settings *s;
    struct calib_set set;
    struct config as = *k->plan.config;
    enum err e;

    k->order = mem_array(n, sizeof(*k->order));
    k->queries = calloc(n + 1, sizeof(*k->queries));
    k->candidates =
        calloc(n * DECISION_CANDIDATES_MAX + 1, sizeof(*k->candidates));
    k->run.outcomes = calloc(n + 1, sizeof(*k->run.outcomes));
    k->run.decided = calloc(n + 1, sizeof(*k->run.decided));
    if (!k->queries || !k->candidates || !k->run.outcomes || !k->run.decided)
        return calibrate_no_memory(k);
    eval_shuffle(k->order, n, (uint64_t)k->seed);
    e = eval_route_open(&k->route, k->cli, &k->plan, &k->run, &k->why);
    if (!e)
        e = eval_route_embed_queries(&k->route);
    if (e)
        return e;
    s = eval_fleet_settings(k->route.fleet);
    k->weights = s->weights;
    k->threshold = s->threshold;
    k->is_auto = s->is_auto;
    as.routing.threshold = k->threshold;
    k->by_number = settings_route(&as).choose;
    as.routing.threshold = -1;
    as.routing.preset = CONFIG_PRESET_NONE;
    k->by_auto = settings_route(&as).choose;
    e = k->is_free && !k->set.n_examples ? calibrate_collect_apart(k)
                                         : calibrate_collect_alike(k);
    if (e)
        return e;
    set = calibrate_set(k);
    if (calib_run(&set, &k->weights, k->is_free, &k->result))
        return calibrate_no_memory(k);
    calib_judge(&set, &k->weights, k->threshold, CALIB_ALL, &k->before);
    return OK;
}

/* Showing. */

/* Rounded for a configuration. */
static double calibrate_round(double x)
{
    return round(1000 * x) / 1000;
}

struct curve {
    double x1;
    double x[CURVE], right[CURVE], refused[CURVE], noticed[CURVE];
};

static void calibrate_draw(const struct calibration *k, struct curve *c)
{
    struct calib_set s = calibrate_set(k);
    struct calib_figures f = {.n = 1};

    /* Up to the threshold that no agent reaches. */
    for (int tenths = 1; tenths <= 10 && f.n > f.n_refused; tenths++) {
        c->x1 = tenths / 10.0;
        calib_judge(&s, &k->result.weights, c->x1, CALIB_ALL, &f);
    }
    for (size_t i = 0; i < CURVE; i++) {
        c->x[i] = c->x1 * (double)i / (CURVE - 1);
        calib_judge(&s, &k->result.weights, c->x[i], CALIB_ALL, &f);
        c->right[i] = eval_share(f.n_right, f.n);
        c->refused[i] = eval_share(f.n_refused, f.n);
        c->noticed[i] = eval_share(f.n_noticed, f.n_out);
    }
}

static void calibrate_show_figures(struct cli *c, const char *what,
                                   const struct calib_figures *f)
{
    char line[256];
    int n = snprintf(line, sizeof(line),
                     "%.1f %% go to a right agent, %.1f %% to none",
                     100 * eval_share(f->n_right, f->n),
                     100 * eval_share(f->n_refused, f->n));

    if (f->n_out)
        snprintf(line + n, sizeof(line) - (size_t)n,
                 "; out of scope %.1f %% are detected",
                 100 * eval_share(f->n_noticed, f->n_out));
    eval_show_line(c, what, "%s", line);
}

static void calibrate_show_auto(struct cli *c, const struct calibration *k)
{
    const struct eval_bands *b = &k->at_auto;
    char line[320];
    int n = snprintf(line, sizeof(line),
                     "%.1f %% are confident and right, %.1f %% confident and "
                     "wrong, %.1f %% unsure (%.1f %% with the right agent in "
                     "first place), %.1f %% classified as out of scope",
                     100 * eval_share(b->n_confident_right, b->n),
                     100 * eval_share(b->n_confident_wrong, b->n),
                     100 * eval_share(b->n_unsure, b->n),
                     100 * eval_share(b->n_unsure_right, b->n),
                     100 * eval_share(b->n_refused, b->n));

    if (b->n_out)
        snprintf(line + n, sizeof(line) - (size_t)n,
                 "; out of scope %.1f %% are detected",
                 100 * eval_detected_share(b));
    eval_show_line(c, k->is_auto ? "now, at auto" : "at auto", "%s", line);
}

static void calibrate_show_setting(struct cli *c, const struct calibration *k)
{
    const struct signal_weights *w = &k->result.weights;
    char line[256];

    snprintf(line, sizeof(line), "\n\"routing\": { \"threshold\": %.3f",
             calibrate_round(k->result.threshold));
    buf_add_str(&c->out, str_of(line));
    if (k->is_free) {
        snprintf(line, sizeof(line),
                 ",\n             \"weights\": { \"semantic\": %.2f, "
                 "\"performance\": %.2f,\n                          "
                 "\"keyword\": %.2f, \"recency\": %.2f }",
                 w->semantic, w->performance, w->keyword, w->recency);
        buf_add_str(&c->out, str_of(line));
    }
    buf_add_str(&c->out, STR(" }\n"));
}

static void calibrate_show(struct calibration *k)
{
    struct cli *c = k->cli;
    struct curve curve;
    const struct plot_curve curves[] = {
        {"in scope, go to a right agent", '*', curve.right},
        {"out of scope, are detected", 'o', curve.noticed},
        {"in scope, go to none", '.', curve.refused},
    };
    char line[256];

    calibrate_draw(k, &curve);
    eval_show_line(c, "threshold",
                   "%.3f; on %lld parts of the queries it was between %.3f "
                   "and %.3f",
                   calibrate_round(k->result.threshold), (long long)k->folds,
                   k->result.least, k->result.most);
    calibrate_show_figures(c, "expected", &k->result.found);
    if (!k->is_auto) {
        snprintf(line, sizeof(line), "now, at %.3g", k->threshold);
        calibrate_show_figures(c, line, &k->before);
    }
    calibrate_show_auto(c, k);
    buf_add_char(&c->out, '\n');
    plot_write(&c->out, curves, k->before.n_out ? 3 : 1, CURVE, 0, curve.x1,
               k->result.threshold, c->width);
    calibrate_show_setting(c, k);
    buf_add_str(&c->out,
                STR("\nThe default is \"auto\", which needs no labelled "
                    "queries. A number fits these\nagents and this model: "
                    "calibrate again when either changes.\n"));
    if (!k->before.n_out)
        buf_add_str(
            &c->out,
            STR("\nNo query is out of scope, so the threshold is the one "
                "that costs 2 % of the right\nanswers. Add queries that "
                "no agent should answer to detect those too.\n"));
}

static void calibrate_put_figures(struct json_out *o, const char *key,
                                  double threshold,
                                  const struct calib_figures *f)
{
    json_key(o, str_of(key));
    json_open(o, '{');
    json_member_real(o, "threshold", threshold);
    json_member_real(o, "right_agent", eval_share(f->n_right, f->n));
    json_member_real(o, "false_alarms", eval_share(f->n_refused, f->n));
    json_member_real(o, "out_of_scope_recall",
                     eval_share(f->n_noticed, f->n_out));
    json_close(o, '}');
}

/* A query that is not confident counts as going to no agent. */
static void calibrate_put_auto(struct json_out *o, const char *key,
                               const struct eval_bands *b)
{
    size_t n_confident = b->n_confident_right + b->n_confident_wrong;

    json_key(o, str_of(key));
    json_open(o, '{');
    json_member_text(o, "threshold", STR("auto"));
    json_member_real(o, "right_agent", eval_share(b->n_confident_right, b->n));
    json_member_real(o, "false_alarms", eval_share(b->n - n_confident, b->n));
    json_member_real(o, "out_of_scope_recall", eval_detected_share(b));
    json_member_real(o, "unsure", eval_share(b->n_unsure, b->n));
    json_member_real(o, "unsure_right", eval_share(b->n_unsure_right, b->n));
    json_close(o, '}');
}

static void calibrate_show_json(struct calibration *k)
{
    struct json_out o = json_out(&k->cli->out);
    const struct signal_weights *w = &k->result.weights;
    struct curve curve;

    calibrate_draw(k, &curve);
    json_open(&o, '{');
    json_member_real(&o, "threshold", calibrate_round(k->result.threshold));
    json_key(&o, STR("weights"));
    json_open(&o, '{');
    json_member_real(&o, "semantic", w->semantic);
    json_member_real(&o, "performance", w->performance);
    json_member_real(&o, "keyword", w->keyword);
    json_member_real(&o, "recency", w->recency);
    json_close(&o, '}');
    json_member_int(&o, "folds", k->folds);
    json_member_real(&o, "least", k->result.least);
    json_member_real(&o, "most", k->result.most);
    json_member_int(&o, "n", (int64_t)k->before.n);
    json_member_int(&o, "n_out_of_scope", (int64_t)k->before.n_out);
    calibrate_put_figures(&o, "expected", calibrate_round(k->result.threshold),
                          &k->result.found);
    if (k->is_auto)
        calibrate_put_auto(&o, "now", &k->at_auto);
    else
        calibrate_put_figures(&o, "now", k->threshold, &k->before);
    calibrate_put_auto(&o, "auto", &k->at_auto);
    json_key(&o, STR("curve"));
    json_open(&o, '[');
    for (size_t i = 0; i < CURVE; i++) {
        json_open(&o, '{');
        json_member_real(&o, "threshold", curve.x[i]);
        json_member_real(&o, "right_agent", curve.right[i]);
        json_member_real(&o, "false_alarms", curve.refused[i]);
        json_member_real(&o, "out_of_scope_recall", curve.noticed[i]);
        json_close(&o, '}');
    }
    json_close(&o, ']');
    json_close(&o, '}');
    buf_add_char(&k->cli->out, '\n');
}

/* The command. */

static enum exit_status calibrate_read_options(struct cli *c,
                                               struct calibration *k)
{
    enum exit_status status;

    if (!args_has(&c->args, "agents") || !c->args.n_operands)
        return cli_error(c, ERR_USAGE,
                         "agents and queries are missing: signalbox calibrate "
                         "--agents A.jsonl TEST.jsonl");
    if (!cli_number(c, "folds", 2, EVAL_FOLDS_MAX, FOLDS, &k->folds, &status) ||
        !cli_number(c, "seed", 0, INT64_MAX, 0, &k->seed, &status) ||
        !cli_number(c, "limit", 1, EVAL_QUERIES_MAX, EVAL_QUERIES_MAX + 1,
                    &k->limit, &status))
        return status;
    if (args_has(&c->args, "learn") && !args_has(&c->args, "train"))
        return cli_error(c, ERR_USAGE, "--learn needs --train FILE");
    k->is_free = args_has(&c->args, "weights");
    k->plan.default_agent = args_get(&c->args, "default");
    status = eval_read_checkpoints(c, &k->plan);
    if (!status)
        status = eval_read_embedder(c, &k->plan);
    return status;
}

static enum err calibrate_read_set(struct cli *c, struct calibration *k)
{
    enum err e =
        eval_read_agents(&k->set, args_get(&c->args, "agents").p, &k->why);

    for (size_t i = 0; i < c->args.n_operands && !e; i++)
        e = eval_read_queries(&k->set, c->args.operands[i].p, (size_t)k->limit,
                              &k->why);
    if (!e && args_has(&c->args, "train"))
        e = eval_read_examples(&k->set, args_get(&c->args, "train").p, &k->why);
    if (!e && (size_t)k->folds > k->set.n_queries)
        e = why_err(&k->why, ERR_USAGE,
                    "--folds is %lld, and there are %zu queries",
                    (long long)k->folds, k->set.n_queries);
    return e;
}

enum exit_status cli_calibrate(struct cli *c)
{
    struct calibration k = {.cli = c};
    enum exit_status status = EXIT_FAILED;
    struct config *config = eval_config(c, &status);
    enum err e;

    if (!config)
        return status;
    eval_set_init(&k.set);
    k.plan.config = config;
    k.plan.set = &k.set;
    status = calibrate_read_options(c, &k);
    if (!status) {
        e = calibrate_read_set(c, &k);
        if (!e)
            e = calibrate_run(&k);
        if (e)
            status = cli_error(c, e, "%s", k.why.text);
        else if (c->json)
            calibrate_show_json(&k);
        else
            calibrate_show(&k);
    }
    eval_route_close(&k.route);
    eval_run_fini(&k.run);
    eval_set_fini(&k.set);
    free(k.order);
    free(k.queries);
    free(k.candidates);
    config_free(config);
    return status;
}
