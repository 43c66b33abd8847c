/* Names are written for machines, as parts separated by capitals, dots and
 * underscores. A model knows the parts, not the whole.
 *
 * Accuracy of all-MiniLM-L6-v2 on public sets (clinc150, metatool, sgd,
 * sealtools; docs/quality.md) with this form: 68.5, 53.9, 73.3, 74.1 %. With
 * the description alone: 68.5, 53.4, 67.1, 72.5; with the name unchanged: 66.8,
 * 53.2, 74.5, 68.4; with a full stop instead of the colon: 68.5, 50.9, 61.9,
 * 73.4; with a space: 67.4, 52.3, 66.7, 74.2. */
#include "model/profile.h"

static bool profile_is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Whether a word begins at i without a separator: "getAlarm", and "HTTPServer"
 * before its last capital. */
static bool profile_begins_word(struct str s, size_t i)
{
    if (i == 0 || !profile_is_upper(s.p[i]))
        return false;
    return (str_is_alnum(s.p[i - 1]) && !profile_is_upper(s.p[i - 1])) ||
           (profile_is_upper(s.p[i - 1]) && i + 1 < s.n && s.p[i + 1] >= 'a' &&
            s.p[i + 1] <= 'z');
}

void profile_add_words(struct buf *out, struct str name)
{
    bool is_gap_due = false, is_first = true;
    size_t dot = name.n;

    while (dot > 0 && name.p[dot - 1] != '.')
        dot--;
    if (dot < name.n)
        name = str_sub(name, dot, name.n);

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (c == '_' || c == '-' || c == '.') {
            is_gap_due = true;
            continue;
        }
        if (!is_first && (is_gap_due || profile_begins_word(name, i)))
            buf_add_char(out, ' ');
        buf_add_char(out, c);
        is_gap_due = is_first = false;
    }
}

void profile_add(struct buf *out, struct str name, struct str description)
{
    size_t from = out->n;

    profile_add_words(out, name);
    description = str_trim(description);
    if (!description.n ||
        str_eq_nocase(str_sub(buf_str(out), from, out->n), description))
        return;
    if (out->n > from)
        buf_add_str(out, STR(": "));
    buf_add_str(out, description);
}
