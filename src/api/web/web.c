/* Finding files, and their HTTP headers. A path is looked up as written,
 * without decoding: paths of the dashboard need none, so only names in the
 * table can be requested. */
#include "api/web/internal.h"

const struct web_file *web_find(struct str path)
{
    size_t from = 0, to = n_web_packed;

    while (from < to) {
        size_t at = from + (to - from) / 2;
        int cmp = str_cmp(path, web_packed[at].path);

        if (cmp == 0)
            return &web_packed[at];
        if (cmp < 0)
            to = at;
        else
            from = at + 1;
    }
    return NULL;
}

const struct web_file *web_at(size_t i)
{
    return i < n_web_packed ? &web_packed[i] : NULL;
}

struct str web_folder(void)
{
    return str_of(web_packed_folder);
}

struct str web_type(struct str path)
{
    static const struct {
        struct str end, type;
    } rows[] = {
        {STR(".css"), STR("text/css; charset=utf-8")},
        {STR(".html"), STR("text/html; charset=utf-8")},
        {STR(".js"), STR("text/javascript; charset=utf-8")},
        {STR(".json"), STR("application/json")},
        {STR(".png"), STR("image/png")},
        {STR(".svg"), STR("image/svg+xml")},
        {STR(".txt"), STR("text/plain; charset=utf-8")},
        {STR(".woff2"), STR("font/woff2")},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (path.n > rows[i].end.n &&
            str_eq(str_sub(path, path.n - rows[i].end.n, path.n), rows[i].end))
            return rows[i].type;
    return STR("");
}

/* "q=0", "q=0.0", "q=0.000": not acceptable. */
static bool encoding_is_refused(struct str params)
{
    while (params.n) {
        struct str value = str_trim(str_cut(&params, ';'));
        struct str name = str_trim(str_cut(&value, '='));
        size_t i = 0;

        if (!str_eq_nocase(name, STR("q")))
            continue;
        value = str_trim(value);
        while (i < value.n && (value.p[i] == '0' || value.p[i] == '.'))
            i++;
        return value.n > 0 && i == value.n;
    }
    return false;
}

bool web_takes_gzip(struct str accept_encoding)
{
    bool takes_any = false;

    while (accept_encoding.n) {
        struct str params = str_cut(&accept_encoding, ',');
        struct str name = str_trim(str_cut(&params, ';'));

        if (str_eq_nocase(name, STR("gzip")) ||
            str_eq_nocase(name, STR("x-gzip")))
            return !encoding_is_refused(params);
        if (str_eq(name, STR("*")))
            takes_any = !encoding_is_refused(params);
    }
    return takes_any;
}

bool web_is_known(struct str if_none_match, struct str etag)
{
    if (str_eq(str_trim(if_none_match), STR("*")))
        return true;
    while (if_none_match.n) {
        struct str one = str_trim(str_cut(&if_none_match, ','));

        if (str_starts(one, STR("W/")))
            one = str_sub(one, 2, one.n);
        if (str_eq(one, etag))
            return true;
    }
    return false;
}

void web_fill(struct buf *out, struct str page, struct str assets)
{
    while (page.n) {
        if (str_starts(page, WEB_PLACEHOLDER)) {
            buf_add_str(out, assets);
            page = str_sub(page, WEB_PLACEHOLDER.n, page.n);
        } else {
            buf_add_char(out, page.p[0]);
            page = str_sub(page, 1, page.n);
        }
    }
}
