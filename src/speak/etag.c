/* Conditions of RFC 9110, 13.1: the revision that a client believes to be
 * current. Our ETag is a revision in quotes. Any other quoted text is valid but
 * never matches: the client may have talked to another server before. A
 * malformed ETag is an error, because ignoring the condition would overwrite
 * the work of another client. */
#include "speak/speak.h"

#include <stdio.h>

static enum err etag_list_invalid(struct str name, struct why *why)
{
    return why_err(why, ERR_BAD_REQUEST,
                   "%.*s must be * or up to %d ETags in their quotes, with "
                   "commas between them, as answers gave them: \"3\"",
                   STR_ARG(name), SPEAK_TAGS_MAX);
}

static bool is_tag_byte(char c)
{
    unsigned char u = (unsigned char)c;

    return u == 0x21 || (u >= 0x23 && u != 0x7f);
}

/* Zero: not one of ours. */
static int64_t etag_revision(struct str text)
{
    int64_t v;

    if (!text.n || text.p[0] == '0' || text.p[0] == '-' ||
        str_to_i64(text, &v) != OK)
        return 0;
    return v;
}

/* Take one ETag off the front of *rest; false: it does not begin with one. */
static bool etag_take(struct str *rest, struct speak_tag *out)
{
    size_t from = 0, to;

    *out = (struct speak_tag){.revision = 0};
    if (str_starts(*rest, STR("W/"))) {
        out->is_weak = true;
        from = 2;
    }
    if (from >= rest->n || rest->p[from] != '"')
        return false;
    for (to = ++from; to < rest->n && is_tag_byte(rest->p[to]); to++)
        ;
    if (to >= rest->n || rest->p[to] != '"')
        return false;
    out->revision = etag_revision(str_sub(*rest, from, to));
    *rest = str_sub(*rest, to + 1, rest->n);
    return true;
}

static bool etag_take_comma(struct str *rest)
{
    bool is_there = rest->n && rest->p[0] == ',';

    if (is_there)
        *rest = str_sub(*rest, 1, rest->n);
    *rest = str_trim(*rest);
    return is_there;
}

enum err speak_tags(struct str name, struct str header, struct speak_tags *out,
                    struct why *why)
{
    struct str rest = str_trim(header);

    *out = (struct speak_tags){.is_given = header.p != NULL};
    if (!header.p)
        return OK;
    if (str_eq(rest, STR("*"))) {
        out->is_any = true;
        return OK;
    }
    while (rest.n) {
        while (etag_take_comma(&rest)) /* empty members are allowed */
            ;
        if (!rest.n)
            break;
        if (out->n == SPEAK_TAGS_MAX || !etag_take(&rest, &out->list[out->n]))
            return etag_list_invalid(name, why);
        out->n++;
        rest = str_trim(rest);
        if (rest.n && rest.p[0] != ',')
            return etag_list_invalid(name, why);
    }
    return out->n ? OK : etag_list_invalid(name, why);
}

bool speak_tags_have(const struct speak_tags *t, int64_t revision,
                     bool weak_will_do)
{
    if (t->is_any)
        return true;
    for (size_t i = 0; i < t->n; i++)
        if (t->list[i].revision == revision &&
            (weak_will_do || !t->list[i].is_weak))
            return true;
    return false;
}

struct str speak_etag(int64_t revision, char out[SPEAK_ETAG_BYTES])
{
    int n = snprintf(out, SPEAK_ETAG_BYTES, "\"%lld\"", (long long)revision);

    return (struct str){out, (size_t)n};
}
