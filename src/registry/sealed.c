/* Cards in the store: the part that may be read by anyone who gets hold of the
 * database, and, after a newline, the secret part, sealed with a key that is
 * stored elsewhere:
 *
 *     {"name":"Z","description":"…","url":"https://z.example/"}
 *     sealed 1:ab12cd34:…
 *
 * Sealed are authentication, and url and wake.url where they have a query. A
 * card without these, or a server without a key, has only the first line, and
 * so do cards of earlier versions: those are sealed when the loop begins, one
 * after the other, each guarded against changes since it was read.
 *
 * A seal is bound to the name of its agent, so that rows cannot be swapped. */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/url.h"
#include "registry/internal.h"

#define MARK "sealed "

enum {
    SECRETS_BYTES_MAX = SEAL_PLAIN_MAX,
    SCRATCH_BYTES = 32 * AGENT_CARD_MAX
};

static struct str without_query(struct str url)
{
    return str_sub(url, 0, str_find(url, '?', 0));
}

static bool has_query(struct str url)
{
    return url_is_http(url) && str_find(url, '?', 0) < url.n;
}

bool sealed_has_secrets(const struct agent *a)
{
    return a->authentication.n || has_query(a->url) || has_query(a->wake.url);
}

static enum err sealed_write_plain(struct buf *out, const struct agent *a)
{
    struct agent shown = *a;
    struct buf plain;
    enum err e;

    shown.authentication = STR("");
    if (has_query(a->url))
        shown.url = without_query(a->url);
    if (has_query(a->wake.url))
        shown.wake.url = without_query(a->wake.url);
    e = entry_write(&shown, &plain);
    if (!e)
        buf_add_str(out, buf_str(&plain));
    buf_fini(&plain);
    return e;
}

enum err sealed_write(const struct registry *r, struct str key,
                      const struct agent *a, struct buf *out)
{
    struct buf secrets;
    enum err err;
    struct json_out o;

    if (!r->opts.seal || !sealed_has_secrets(a))
        return entry_write(a, out);
    buf_init(out, 8 * AGENT_CARD_MAX);
    buf_init(&secrets, SECRETS_BYTES_MAX);
    o = json_out(&secrets);
    json_open(&o, '{');
    if (a->authentication.n)
        json_member_raw(&o, "authentication", a->authentication);
    if (has_query(a->url))
        json_member_str(&o, "url", a->url);
    if (has_query(a->wake.url))
        json_member_str(&o, "wake_url", a->wake.url);
    json_close(&o, '}');
    err = secrets.over ? ERR_NOMEM : sealed_write_plain(out, a);
    if (!err) {
        buf_add_str(out, STR("\n" MARK));
        err = seal_close(r->opts.seal, key, buf_str(&secrets), out);
    }
    buf_fini(&secrets);
    return err || out->over ? ERR_NOMEM : OK;
}

static enum err sealed_wrong_key(const struct registry *r, struct str name,
                                 const char *id, struct why *why)
{
    if (!r->opts.seal)
        return why_err(why, ERR_BAD_CONFIG,
                       "the credentials of the agent \"%.*s\" are sealed with "
                       "the key %s, and there is no key: give it with "
                       "seal.keyFile or seal.keyVariable. Where it is "
                       "lost, seal.ignoreWrongKey starts the server "
                       "without these credentials",
                       STR_ARG(name), id);
    return why_err(why, ERR_BAD_CONFIG,
                   "the credentials of the agent \"%.*s\" are sealed with the "
                   "key %s, and the key here is %s (%s): put the right one "
                   "there, or name it with seal.keyFile. Where it is lost, "
                   "seal.ignoreWrongKey starts the server without these "
                   "credentials",
                   STR_ARG(name), id, r->opts.seal->id,
                   r->opts.seal_from ? r->opts.seal_from : "");
}

/* Put the secrets back into the plain part of the card. */
static enum err sealed_join(struct str plain, struct str secrets,
                            struct buf *out)
{
    struct arena scratch;
    struct agent a;
    struct json *s;
    enum err e;

    arena_init(&scratch, SCRATCH_BYTES);
    e = card_read_stored(&scratch, plain, &a);
    s = e ? NULL : json_parse(&scratch, secrets, 0, NULL);
    if (!e && !s)
        e = ERR_SYNTAX;
    if (!e) {
        const struct json *credentials = json_get(s, STR("authentication"));
        struct buf text;

        buf_init(&text, SECRETS_BYTES_MAX);
        if (credentials) {
            struct json_out o = json_out(&text);

            json_put(&o, credentials);
            a.authentication = buf_str(&text);
        }
        a.url = json_str_or(json_get(s, STR("url")), a.url);
        a.wake.url = json_str_or(json_get(s, STR("wake_url")), a.wake.url);
        e = text.over ? ERR_NOMEM : entry_write(&a, out);
        buf_fini(&text);
    }
    arena_fini(&scratch);
    return e;
}

static enum err sealed_keep_plain(struct str plain, struct buf *out)
{
    buf_init(out, 8 * AGENT_CARD_MAX);
    buf_add_str(out, plain);
    return out->over ? ERR_NOMEM : OK;
}

enum err sealed_read(const struct registry *r, struct str key, struct str text,
                     struct buf *out, bool *is_sealed, struct why *why)
{
    static const struct seal_key none = {.id = ""};
    struct str rest = text, plain = str_cut(&rest, '\n');
    char id[SEAL_ID_CHARS + 1];
    struct buf secrets;
    enum err e;

    buf_init(out, 1);
    *is_sealed = rest.n > 0;
    if (!*is_sealed)
        return sealed_keep_plain(plain, out);
    if (!str_starts(rest, STR(MARK)))
        return ERR_SYNTAX;
    buf_init(&secrets, SECRETS_BYTES_MAX);
    e = seal_open(r->opts.seal ? r->opts.seal : &none, key,
                  str_sub(rest, sizeof(MARK) - 1, rest.n), &secrets, id);
    if (e == ERR_NOT_ALLOWED && r->opts.ignores_wrong_key) {
        log_warn(r->opts.log, "registry.credentials_lost", LOG_S("agent", key),
                 LOG_C("key", id));
        e = sealed_keep_plain(plain, out);
    } else if (e == ERR_NOT_ALLOWED) {
        e = sealed_wrong_key(r, key, id, why);
    } else if (!e) {
        e = sealed_join(plain, buf_str(&secrets), out);
    }
    buf_fini(&secrets);
    return e;
}

struct sealing {
    struct registry *r;
    struct tx tx;
    char after[AGENT_NAME_MAX + 1]; /* the last one processed */
};

static void sealing_next(struct sealing *s);

static void on_sealed(struct tx *tx, void *ctx)
{
    struct sealing *s = ctx;

    if (tx->result == TX_COMMITTED)
        s->r->n_sealed++;
    tx_fini(tx);
    sealing_next(s);
}

static struct entry *find_unsealed(const struct sealing *s)
{
    for (size_t i = 0; i < s->r->n; i++) {
        struct entry *e = agent_entry(s->r->list[i]);

        if (e->is_unsealed && str_cmp(e->key, str_of(s->after)) > 0)
            return e;
    }
    return NULL;
}

/* The list is in name order. An agent changed meanwhile was sealed by that
 * change, and the guard fails here. */
static void sealing_next(struct sealing *s)
{
    struct entry *e = s->r->is_stopped ? NULL : find_unsealed(s);
    struct buf text;
    struct tx_op *op;

    if (!e) {
        if (s->r->n_sealed)
            log_info(s->r->opts.log, "registry.sealed",
                     LOG_I("agents", (int64_t)s->r->n_sealed));
        free(s);
        return;
    }
    snprintf(s->after, sizeof(s->after), "%.*s", STR_ARG(e->key));
    tx_init(&s->tx);
    if (sealed_write(s->r, e->key, &e->agent, &text) != OK ||
        review_append(s->r, &s->tx, e, NULL) != OK)
        s->tx.build_error = ERR_NOMEM;
    op = tx_update(&s->tx, &agent_table);
    tx_if(op, AGENT_KEY, IS, value_text(e->key));
    tx_if(op, AGENT_REVISION, IS, value_int(e->agent.revision));
    tx_set(op, AGENT_CARD, value_text(buf_str(&text)));
    buf_fini(&text);
    store_submit(s->r->opts.store, &s->tx, on_sealed, s);
}

void sealed_begin(struct registry *r)
{
    struct sealing *s;

    if (!r->opts.seal)
        return;
    s = mem_new(sizeof(*s));
    s->r = r;
    sealing_next(s);
}
