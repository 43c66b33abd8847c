/* A table of figures, as JSON or as CSV: the caller writes each cell once.
 *
 * CSV follows RFC 4180, with a line of column names first. A cell that a
 * spreadsheet would read as a formula is prefixed with an apostrophe, because
 * texts come from other people. */
#include "speak/speak.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

void sheet_open(struct sheet *s, struct buf *out, bool is_csv,
                const char *const *columns)
{
    *s = (struct sheet){.out = out,
                        .is_csv = is_csv,
                        .json = json_out(out),
                        .columns = columns};
    if (!is_csv) {
        json_open(&s->json, '[');
        return;
    }
    for (size_t i = 0; columns[i]; i++)
        buf_addf(out, "%s%s", i ? "," : "", columns[i]);
    buf_addf(out, "\r\n");
}

void sheet_close(struct sheet *s)
{
    sheet_end_row(s);
    if (!s->is_csv)
        json_close(&s->json, ']');
}

void sheet_row(struct sheet *s)
{
    sheet_end_row(s);
    s->is_within = true;
    s->at = 0;
    if (!s->is_csv)
        json_open(&s->json, '{');
}

void sheet_end_row(struct sheet *s)
{
    if (!s->is_within)
        return;
    s->is_within = false;
    if (s->is_csv)
        buf_addf(s->out, "\r\n");
    else
        json_close(&s->json, '}');
}

static void sheet_begin_cell(struct sheet *s)
{
    if (s->is_csv)
        buf_addf(s->out, "%s", s->at ? "," : "");
    else
        json_key(&s->json, str_of(s->columns[s->at]));
    s->at++;
}

static bool looks_like_formula(struct str v)
{
    return v.n && (v.p[0] == '=' || v.p[0] == '+' || v.p[0] == '-' ||
                   v.p[0] == '@' || v.p[0] == '\t' || v.p[0] == '\r');
}

void sheet_str(struct sheet *s, struct str v)
{
    sheet_strs(s, &v, 1, false);
}

void sheet_strs(struct sheet *s, const struct str *list, size_t n, bool is_list)
{
    sheet_begin_cell(s);
    if (!s->is_csv) {
        if (is_list)
            json_open(&s->json, '[');
        for (size_t i = 0; i < n; i++)
            json_put_str(&s->json, list[i]);
        if (is_list)
            json_close(&s->json, ']');
        return;
    }
    buf_add_char(s->out, '"');
    if (n && looks_like_formula(list[0]))
        buf_add_char(s->out, '\'');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_addf(s->out, " | ");
        for (size_t k = 0; k < list[i].n; k++) {
            if (list[i].p[k] == '"')
                buf_add_char(s->out, '"');
            buf_add_char(s->out, list[i].p[k]);
        }
    }
    buf_add_char(s->out, '"');
}

void sheet_int(struct sheet *s, int64_t v)
{
    sheet_begin_cell(s);
    if (s->is_csv)
        buf_add_i64(s->out, v);
    else
        json_put_int(&s->json, v);
}

void sheet_real(struct sheet *s, double v)
{
    struct json_out o = json_out(s->out);

    sheet_begin_cell(s);
    if (!s->is_csv)
        json_put_real(&s->json, v);
    else if (isfinite(v))
        json_put_real(&o, v);
}

void sheet_none(struct sheet *s)
{
    sheet_begin_cell(s);
    if (!s->is_csv)
        json_put_null(&s->json);
}

void sheet_str_or_none(struct sheet *s, struct str v)
{
    if (v.n)
        sheet_str(s, v);
    else
        sheet_none(s);
}

/* INT64_MIN has no positive counterpart, so the magnitude is unsigned. */
void sheet_micros(struct sheet *s, int64_t v)
{
    uint64_t all = v < 0 ? -(uint64_t)v : (uint64_t)v;

    assert(s->is_csv);
    sheet_begin_cell(s);
    buf_addf(s->out, "%s%" PRIu64 ".%06" PRIu64, v < 0 ? "-" : "",
             all / 1000000, all % 1000000);
}
