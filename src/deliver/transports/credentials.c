/* The server's credentials for an agent, from its card: authentication
 * {"schemes", "credentials", "header"}.
 *
 *     bearer   Authorization: Bearer CREDENTIALS
 *     basic    Authorization: Basic, of "user:password" or its base64
 *     apiKey   CREDENTIALS in the named header, default X-API-Key
 *
 * The first known scheme of the list is used; without a list, bearer. Without
 * credentials nothing is sent: the list then informs other callers. Any user
 * may write a card, so its values must neither leave their header nor replace
 * one of ours. */
#include <openssl/evp.h>
#include <stdio.h>

#include "base/json.h"
#include "deliver/transports/exchange.h"

static bool header_name_is_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = str_lower(s.p[i]);

        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') &&
            (!c || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return s.n > 0;
}

/* Headers that we set ourselves, or that frame the request. */
static bool agent_header_is_reserved(struct str name)
{
    static const char *const names[] = {"Host",
                                        "Content-Length",
                                        "Content-Type",
                                        "Accept",
                                        "Transfer-Encoding",
                                        "Connection",
                                        "Expect",
                                        "Keep-Alive",
                                        "Accept-Encoding",
                                        "TE",
                                        "Trailer",
                                        "Upgrade",
                                        "Idempotency-Key"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (str_eq_nocase(name, str_of(names[i])))
            return true;
    return str_eq_nocase(str_head(name, 12), STR("X-Signalbox-"));
}

static struct str header_value_join(struct arena *arena, const char *head,
                                    struct str tail)
{
    size_t n = strlen(head) + tail.n;
    char *p = arena_alloc(arena, n + 1);

    if (!p)
        return (struct str){0};
    snprintf(p, n + 1, "%s%.*s", head, STR_ARG(tail));
    return (struct str){p, n};
}

static struct str credentials_base64(struct arena *arena, struct str s)
{
    size_t n = 4 * ((s.n + 2) / 3);
    unsigned char *p = arena_alloc(arena, n + 1);

    if (!p)
        return (struct str){0};
    EVP_EncodeBlock(p, (const unsigned char *)s.p, (int)s.n);
    return (struct str){(const char *)p, n};
}

enum scheme { BEARER, BASIC, API_KEY, N_SCHEMES };

static enum scheme credentials_scheme(struct arena *arena, struct str list)
{
    static const struct str names[N_SCHEMES] = {STR("bearer"), STR("basic"),
                                                STR("apikey")};
    struct str raw, name;
    bool is_empty = true;

    while (list.n && json_next(&list, &raw)) {
        is_empty = false;
        for (int i = 0; json_unquote(arena, raw, &name) && i < N_SCHEMES; i++)
            if (str_eq_nocase(name, names[i]))
                return i;
    }
    return is_empty ? BEARER : N_SCHEMES;
}

static enum err credentials_error(struct why *why, const struct agent *a,
                                  const char *what)
{
    return why_err(why, ERR_UNREACHABLE,
                   "the agent \"%.*s\" cannot be called: %s; its creator can "
                   "correct its card",
                   STR_ARG(a->name), what);
}

static enum err credentials_fill(struct arena *arena, enum scheme s,
                                 struct str secret, struct str header,
                                 struct credentials *out)
{
    bool has_name = str_find(secret, ':', 0) < secret.n;

    out->header.name = s == API_KEY ? header : STR("Authorization");
    out->secrets[0] = secret;
    if (s == BASIC && has_name)
        secret = out->secrets[1] = credentials_base64(arena, secret);
    out->header.value = header_value_join(arena,
                                          s == BEARER  ? "Bearer "
                                          : s == BASIC ? "Basic "
                                                       : "",
                                          secret);
    return secret.p && out->header.value.p ? OK : ERR_NOMEM;
}

/* A card is validated when it is read, so a value of another type counts as
 * absent. Values are copied, since the card may change before the answer. */
static enum err credentials_read_card(struct arena *arena,
                                      const struct agent *a, struct str *secret,
                                      struct str *header, enum scheme *s)
{
    static const struct str keys[] = {STR("schemes"), STR("credentials"),
                                      STR("header")};
    struct str values[3];
    enum err e = json_scan(a->authentication, keys, 3, values, NULL);

    *secret = *header = (struct str){0};
    if (e)
        return e;
    *s = credentials_scheme(arena, values[0]);
    if (values[1].n && !json_unquote(arena, values[1], secret))
        return ERR_NOMEM;
    if (values[2].n && !json_unquote(arena, values[2], header))
        return ERR_NOMEM;
    if (!header->n)
        *header = STR("X-API-Key");
    return OK;
}

enum err credentials_of(struct arena *arena, const struct agent *a,
                        struct credentials *out, struct why *why)
{
    struct str secret = {0}, header;
    enum scheme s;
    enum err e = OK;

    *out = (struct credentials){0};
    if (a->authentication.n)
        e = credentials_read_card(arena, a, &secret, &header, &s);
    if (e)
        return why_err(why, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    if (!secret.n)
        return OK;
    if (s == N_SCHEMES)
        return credentials_error(
            why, a,
            "its authentication.schemes has none that this server "
            "knows (bearer, basic, apiKey)");
    if (str_has_any_control(secret))
        return credentials_error(
            why, a,
            "its authentication.credentials have a line end or "
            "another control character in them");
    if (s == API_KEY &&
        (!header_name_is_token(header) || agent_header_is_reserved(header)))
        return credentials_error(
            why, a,
            "its authentication.header is not a header that a key "
            "can be sent in");
    e = credentials_fill(arena, s, secret, header, out);
    return e ? why_err(why, e, "%s", err_row(e)->wording) : OK;
}
