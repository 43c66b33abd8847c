/* Head and body as they arrive. Every byte is counted here, whatever length
 * the answer declares. Interim answers (1xx) and trailers count as headers, so
 * that a server cannot send them forever.
 *
 * A pause is signalled to libcurl by rejecting its bytes, the only way that
 * holds back nothing but the bytes it has in hand. It repeats them when it
 * resumes; skip_bytes is the number that was taken before. */
#include "net/client/internal.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/mem.h"

static bool answer_take_event(void *ctx, const struct sse_event *e)
{
    struct request *r = ctx;

    r->on.on_event(r->ctx, r->id, e);
    return r->id != 0;
}

void answer_init(struct request *r)
{
    buf_init(&r->head, r->fetch->opts.max_header_bytes);
}

static void answer_forget_head(struct request *r)
{
    buf_clear(&r->head);
    free(r->came);
    r->came = NULL;
    r->n_came = 0;
    r->status = 0;
    r->is_headed = r->is_redirect = false;
}

void answer_fini(struct request *r)
{
    answer_forget_head(r);
    buf_fini(&r->head);
    buf_fini(&r->body_in);
    sse_fini(&r->sse);
}

struct fetch_answer answer_of(const struct request *r)
{
    return (struct fetch_answer){
        .status = r->is_headed ? r->status : 0,
        .url = buf_str(&r->url_text),
        .headers = r->came,
        .n_headers = r->n_came,
        .body = buf_str(&r->body_in),
        .peer = str_of(r->peer),
        .refused = str_of(r->refused),
        .tls = str_of(r->tls),
    };
}

/* The head. */

static struct str answer_header_value(const struct request *r, struct str name)
{
    for (size_t i = 0; i < r->n_came; i++)
        if (str_eq_nocase(r->came[i].name, name))
            return r->came[i].value;
    return (struct str){NULL, 0};
}

/* Split the lines into names and values that point into them. */
static bool answer_read_head(struct request *r)
{
    struct str rest = buf_str(&r->head);
    size_t n = 0;

    for (size_t i = 0; i < rest.n; i++)
        n += rest.p[i] == '\n';
    if (n > HEADERS_MAX) {
        request_cut(r, ERR_LIMIT, "%.*s answered with more than %d headers",
                    STR_ARG(r->url.authority), HEADERS_MAX);
        return false;
    }
    r->came = mem_array(n + 1, sizeof(*r->came));
    while (rest.n) {
        struct str value = str_cut(&rest, '\n');
        struct str name = str_cut(&value, ':');

        r->came[r->n_came++] =
            (struct fetch_header){.name = name, .value = str_trim(value)};
    }
    return true;
}

/* The declared length serves to reject an answer early. If there are two
 * lengths, or one that is no number, libcurl would pick one. */
static bool answer_fits(struct request *r)
{
    struct str first = answer_header_value(r, STR("Content-Length"));
    int64_t said = 0;

    for (size_t i = 0; i < r->n_came; i++)
        if (str_eq_nocase(r->came[i].name, STR("Content-Length")) &&
            (str_to_i64(r->came[i].value, &said) || said < 0 ||
             !str_eq(r->came[i].value, first))) {
            request_cut(r, ERR_BAD_REQUEST, "%.*s says a length that is none",
                        STR_ARG(r->url.authority));
            return false;
        }
    if (str_eq(str_of(r->method), STR("HEAD")) || r->status == 204 ||
        r->status == 304 || (uint64_t)said <= r->max_body_bytes)
        return true;
    request_cut(r, ERR_LIMIT,
                "%.*s announces %lld bytes, and %zu are as many as are taken",
                STR_ARG(r->url.authority), (long long)said, r->max_body_bytes);
    return false;
}

/* With both a length and a coding, different readers see different ends of the
 * body: on a kept connection, or behind a proxy, the rest would be taken for
 * the next answer. */
static bool answer_has_one_end(struct request *r)
{
    if (!answer_header_value(r, STR("Content-Length")).p ||
        !answer_header_value(r, STR("Transfer-Encoding")).p ||
        PLANTED("fetch.two_ends"))
        return true;
    request_cut(r, ERR_BAD_REQUEST,
                "%.*s answered with both Content-Length and Transfer-Encoding",
                STR_ARG(r->url.authority));
    return false;
}

static bool is_event_stream(const struct request *r)
{
    struct str type = answer_header_value(r, STR("Content-Type"));

    return str_eq_nocase(str_trim(str_cut(&type, ';')),
                         STR("text/event-stream"));
}

/* The empty line. False: the answer is not read further. */
static bool answer_end_head(struct request *r)
{
    long status = 0;

    curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status);
    r->status = (int)status;
    if (status == 101) {
        request_cut(r, ERR_BAD_REQUEST,
                    "%.*s changed to another protocol without being asked to",
                    STR_ARG(r->url.authority));
        return false;
    }
    if (status < 200) {
        answer_forget_head(r);
        return true;
    }
    if (!answer_read_head(r))
        return false;
    r->is_headed = true;
    if (!answer_has_one_end(r))
        return false;
    r->is_redirect = redirect_is(r);
    if (r->is_redirect)
        return true;
    if (!answer_fits(r))
        return false;
    r->is_stream = r->on.on_event && is_event_stream(r);
    if (r->is_stream)
        sse_init(&r->sse, r->max_event_bytes, answer_take_event, r);
    else
        buf_init(&r->body_in, r->max_body_bytes);
    if (r->on.on_head) {
        struct fetch_answer a = answer_of(r);

        r->on.on_head(r->ctx, r->id, &a);
    }
    return r->id != 0;
}

/* One header line, without its end. A line that begins with a blank continues
 * the previous one. */
static void answer_add_line(struct request *r, struct str line)
{
    if ((line.p[0] == ' ' || line.p[0] == '\t') && r->head.n) {
        r->head.p[r->head.n - 1] = ' ';
        line = str_trim(line);
    } else if (str_find(line, ':', 0) == line.n) {
        return; /* not a header */
    }
    buf_add_str(&r->head, line);
    buf_add_char(&r->head, '\n');
}

static bool note_bytes(struct request *r, size_t n)
{
    if (!r->id || r->cut)
        return false;
    r->heard_ms = loop_mono_ms(r->fetch->loop);
    r->fetch->stats.bytes_in_total += (int64_t)n;
    return true;
}

size_t answer_header(char *p, size_t size, size_t n, void *ctx)
{
    struct request *r = ctx;
    struct str line = {p, n};

    (void)size; /* is always 1 */
    if (!note_bytes(r, n))
        return 0;
    r->head_bytes += n;
    if (r->head_bytes > r->fetch->opts.max_header_bytes) {
        request_cut(r, ERR_LIMIT,
                    "%.*s answered with more than %zu bytes of headers",
                    STR_ARG(r->url.authority), r->fetch->opts.max_header_bytes);
        return 0;
    }
    if (r->is_headed)
        return n; /* a trailer */
    while (line.n && strchr("\r\n", line.p[line.n - 1]))
        line.n--;
    if (!line.n)
        return answer_end_head(r) ? n : 0;
    if (str_starts(line, STR("HTTP/1.")))
        answer_forget_head(r);
    else if (str_starts(line, STR("HTTP/")))
        request_cut(r, ERR_BAD_REQUEST, "%.*s does not speak HTTP/1.1",
                    STR_ARG(r->url.authority));
    else
        answer_add_line(r, line);
    if (r->head.over)
        request_cut(r, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    return r->cut ? 0 : n;
}

/* The body. */

/* Line by line, so that a pause takes effect at the event in which it was
 * requested. Returns the number of bytes taken. */
static size_t answer_feed_stream(struct request *r, struct str bytes)
{
    size_t at = 0;

    while (at < bytes.n && r->id && !r->is_paused) {
        size_t end = sse_line_end(bytes, at);

        end = end < bytes.n ? end + 1 : end;
        if (sse_feed(&r->sse, str_sub(bytes, at, end)) == ERR_LIMIT)
            request_cut(r, ERR_LIMIT,
                        "%.*s sent an event of more than %zu bytes",
                        STR_ARG(r->url.authority), r->max_event_bytes);
        if (r->cut)
            break;
        at = end;
    }
    return at;
}

/* Returns the number of bytes taken. */
static size_t answer_take(struct request *r, struct str bytes)
{
    if (r->is_stream)
        return answer_feed_stream(r, bytes);
    if (r->on.on_bytes) {
        r->on.on_bytes(r->ctx, r->id, bytes);
        return bytes.n;
    }
    buf_add_str(&r->body_in, bytes);
    if (r->body_in.over)
        request_cut(r, ERR_NOMEM, "%s", err_row(ERR_NOMEM)->wording);
    return bytes.n;
}

/* Count new bytes. False: there are too many. */
static bool answer_count_bytes(struct request *r, size_t n)
{
    size_t max = r->is_redirect ? REDIRECT_BODY_BYTES : r->max_body_bytes;

    if (n <= max - r->got_bytes) {
        r->got_bytes += n;
        return true;
    }
    if (!r->is_redirect) /* its body is not used */
        request_cut(r, ERR_LIMIT, "%.*s answered with more than %zu bytes",
                    STR_ARG(r->url.authority), r->max_body_bytes);
    return false;
}

size_t answer_body(char *p, size_t size, size_t n, void *ctx)
{
    struct request *r = ctx;
    struct str fresh;
    size_t taken;

    (void)size;
    if (!r->id || r->cut)
        return CURL_WRITEFUNC_ERROR;
    if (r->is_paused && !r->is_redirect)
        return CURL_WRITEFUNC_PAUSE;
    if (n <= r->skip_bytes) {
        r->skip_bytes -= n;
        return n;
    }
    fresh = str_sub((struct str){p, n}, r->skip_bytes, n);
    if (!note_bytes(r, fresh.n) || !answer_count_bytes(r, fresh.n))
        return CURL_WRITEFUNC_ERROR;
    taken = r->is_redirect ? fresh.n : answer_take(r, fresh);
    if (!r->id || r->cut)
        return CURL_WRITEFUNC_ERROR;
    if (taken == fresh.n) {
        r->skip_bytes = 0;
        return n;
    }
    /* Paused in the middle: libcurl repeats these bytes. */
    r->got_bytes -= fresh.n - taken;
    r->fetch->stats.bytes_in_total -= (int64_t)(fresh.n - taken);
    r->skip_bytes += taken;
    return CURL_WRITEFUNC_PAUSE;
}
