/* Heads of replies. Everything is appended to a buf that the caller has
 * enlarged in one step, so the common reply needs no formatting function.
 *
 * Header values may contain text of others (an agent's, a user's). A value
 * that could end its line early would let them write our headers, so it is
 * left out completely rather than repaired: half a value is useless. */
#include "net/server/http.h"

#include <assert.h>

static struct str reason(int status)
{
    switch (status) {
    case 100: return STR("Continue");
    case 101: return STR("Switching Protocols");
    case 200: return STR("OK");
    case 201: return STR("Created");
    case 202: return STR("Accepted");
    case 204: return STR("No Content");
    case 206: return STR("Partial Content");
    case 301: return STR("Moved Permanently");
    case 302: return STR("Found");
    case 303: return STR("See Other");
    case 304: return STR("Not Modified");
    case 307: return STR("Temporary Redirect");
    case 308: return STR("Permanent Redirect");
    case 400: return STR("Bad Request");
    case 401: return STR("Unauthorized");
    case 402: return STR("Payment Required");
    case 403: return STR("Forbidden");
    case 404: return STR("Not Found");
    case 405: return STR("Method Not Allowed");
    case 406: return STR("Not Acceptable");
    case 408: return STR("Request Timeout");
    case 409: return STR("Conflict");
    case 410: return STR("Gone");
    case 411: return STR("Length Required");
    case 412: return STR("Precondition Failed");
    case 413: return STR("Content Too Large");
    case 414: return STR("URI Too Long");
    case 415: return STR("Unsupported Media Type");
    case 416: return STR("Range Not Satisfiable");
    case 417: return STR("Expectation Failed");
    case 421: return STR("Misdirected Request");
    case 422: return STR("Unprocessable Content");
    case 426: return STR("Upgrade Required");
    case 428: return STR("Precondition Required");
    case 429: return STR("Too Many Requests");
    case 431: return STR("Request Header Fields Too Large");
    case 500: return STR("Internal Server Error");
    case 501: return STR("Not Implemented");
    case 502: return STR("Bad Gateway");
    case 503: return STR("Service Unavailable");
    case 504: return STR("Gateway Timeout");
    case 505: return STR("HTTP Version Not Supported");
    case 507: return STR("Insufficient Storage");
    default: return STR("Unknown");
    }
}

static bool is_name_byte(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool header_is_safe(const struct http_header *h)
{
    static const struct str ours[] = {
        STR("connection"),        STR("content-length"), STR("date"),
        STR("transfer-encoding"), STR("keep-alive"),
    };

    if (h->name.n == 0 || str_has_control(h->value))
        return false;
    for (size_t i = 0; i < h->name.n; i++)
        if (!is_name_byte((unsigned char)h->name.p[i]))
            return false;
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        if (str_eq_nocase(h->name, ours[i]))
            return false;
    return true;
}

static void reply_add_header(struct buf *out, struct str name, struct str value)
{
    buf_add_str(out, name);
    buf_add_str(out, STR(": "));
    buf_add_str(out, value);
    buf_add_str(out, STR("\r\n"));
}

bool http_write_header(struct buf *out, const struct http_header *h)
{
    bool is_safe = header_is_safe(h);

    if (is_safe)
        reply_add_header(out, h->name, h->value);
    return is_safe;
}

static void add_status(struct buf *out, int status)
{
    assert(status >= 100 && status <= 599);
    buf_add_str(out, STR("HTTP/1.1 "));
    buf_add_i64(out, status);
    buf_add_char(out, ' ');
    buf_add_str(out, reason(status));
    buf_add_str(out, STR("\r\n"));
}

static void add_framing(struct buf *out, const struct http_reply *r,
                        const struct http_framing *f)
{
    if (http_is_bodiless(r->status))
        return;
    if (f->how == HTTP_CHUNKED) {
        buf_add_str(out, STR("Transfer-Encoding: chunked\r\n"));
    } else if (f->how == HTTP_LENGTH) {
        buf_add_str(out, STR("Content-Length: "));
        buf_add_i64(out, (int64_t)r->body.n);
        buf_add_str(out, STR("\r\n"));
    }
}

size_t http_write_head(struct buf *out, const struct http_reply *r,
                       const struct http_framing *f)
{
    size_t n_left_out = 0;

    if (r->status == 200)
        buf_add_str(out, STR("HTTP/1.1 200 OK\r\n"));
    else
        add_status(out, r->status);
    reply_add_header(out, STR("Date"), f->date);
    if (r->content_type.n && !str_has_control(r->content_type))
        reply_add_header(out, STR("Content-Type"), r->content_type);
    else if (r->content_type.n)
        n_left_out++;
    add_framing(out, r, f);
    buf_add_str(out, f->connection);
    buf_add_str(out, f->also);
    for (size_t i = 0; i < r->n_headers; i++)
        n_left_out += !http_write_header(out, &r->headers[i]);
    buf_add_str(out, STR("\r\n"));
    return n_left_out;
}

static void two_digits(char *to, int64_t v)
{
    to[0] = (char)('0' + v / 10 % 10);
    to[1] = (char)('0' + v % 10);
}

/* Days since 1970 to year, month and day, by eras of 400 years that begin in
 * March, so that the leap day comes last. (gmtime_r takes a lock, and strftime
 * uses the user's language.) */
static void civil_date(int64_t days, int64_t *year, int64_t *month,
                       int64_t *day)
{
    int64_t z = days + 719468;
    int64_t era = z / 146097, of_era = z % 146097;
    int64_t y =
        (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
    int64_t m = (5 * of_year + 2) / 153;

    *day = of_year - (153 * m + 2) / 5 + 1;
    *month = m < 10 ? m + 3 : m - 9;
    *year = era * 400 + y + (*month <= 2);
}

void http_date(int64_t unix_s, char out[HTTP_DATE_BYTES])
{
    static const char weekdays[] = "ThuFriSatSunMonTueWed";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    int64_t s = unix_s < 0 ? 0 : unix_s % 253402300800; /* to year 9999 */
    int64_t days = s / 86400, of_day = s % 86400;
    int64_t year, month, day;

    civil_date(days, &year, &month, &day);
    memcpy(out, "Thu, 01 Jan 1970 00:00:00 GMT", HTTP_DATE_BYTES);
    memcpy(out, weekdays + days % 7 * 3, 3);
    two_digits(out + 5, day);
    memcpy(out + 8, months + (month - 1) * 3, 3);
    two_digits(out + 12, year / 100);
    two_digits(out + 14, year);
    two_digits(out + 17, of_day / 3600);
    two_digits(out + 20, of_day / 60 % 60);
    two_digits(out + 23, of_day % 60);
}
