/* Letters of every script are allowed; invisible characters are not, because
 * people approve the text that they see and machines read the bytes: a
 * bidirectional mark turns "exe.jpg" into "gpj.exe", and tag characters spell
 * whole sentences to a model that no person sees. U+200C and U+200D join or
 * separate letters of Persian, of the Indic scripts and of emoji; they stay. So
 * do variation selectors, which choose among shapes.
 *
 * The cost: the flags of England, Scotland and Wales are written with tags. */
#include "base/utf8.h"
#include "model/card_internal.h"

static const char control[] = "a control character";
static const char turn[] = "a mark that turns the direction of writing";
static const char nothing[] = "a character that cannot be seen";
static const char line_end[] = "a line end of its own kind";
static const char tag[] = "a tag, which cannot be seen";

struct range {
    uint32_t from, to;
    const char *what;
};

/* Sorted. */
static const struct range refused[] = {
    {0x0000, 0x001f, control},   {0x007f, 0x009f, control},
    {0x00ad, 0x00ad, nothing},   {0x034f, 0x034f, nothing},
    {0x061c, 0x061c, turn},      {0x115f, 0x1160, nothing},
    {0x17b4, 0x17b5, nothing},   {0x180e, 0x180e, nothing},
    {0x200b, 0x200b, nothing},   {0x200e, 0x200f, turn},
    {0x2028, 0x2029, line_end},  {0x202a, 0x202e, turn},
    {0x2060, 0x2064, nothing},   {0x2065, 0x2065, nothing},
    {0x2066, 0x2069, turn},      {0x206a, 0x206f, nothing},
    {0x3164, 0x3164, nothing},   {0xfeff, 0xfeff, nothing},
    {0xffa0, 0xffa0, nothing},   {0xfff0, 0xfffb, nothing},
    {0x1bca0, 0x1bca3, nothing}, {0x1d173, 0x1d17a, nothing},
    {0xe0000, 0xe007f, tag},     {0xe0080, 0xe00ff, nothing},
};

/* Characters that show nothing on their own. */
static const struct range blank[] = {
    {0x0009, 0x000d, ""}, {0x0020, 0x0020, ""}, {0x00a0, 0x00a0, ""},
    {0x1680, 0x1680, ""}, {0x180b, 0x180d, ""}, {0x2000, 0x200d, ""},
    {0x202f, 0x202f, ""}, {0x205f, 0x205f, ""}, {0x2800, 0x2800, ""},
    {0x3000, 0x3000, ""}, {0xfe00, 0xfe0f, ""}, {0xe0100, 0xe01ef, ""},
};

static const struct range *letter_range_find(const struct range *list, size_t n,
                                             uint32_t c)
{
    for (size_t i = 0; i < n && list[i].from <= c; i++)
        if (c <= list[i].to)
            return &list[i];
    return NULL;
}

/* The length of the character at `at`, which becomes *c. Invalid bytes cannot
 * occur: JSON has only UTF-8. */
static size_t letter_next(struct str s, size_t at, uint32_t *c)
{
    size_t n = utf8_one(s.p + at, s.p + s.n);

    *c = n ? utf8_decode(s.p + at, n) : 0xfffd;
    return n ? n : 1;
}

static bool is_line_or_tab(struct str s, size_t at)
{
    return s.p[at] == '\n' || s.p[at] == '\t' ||
           (s.p[at] == '\r' && at + 1 < s.n && s.p[at + 1] == '\n');
}

bool card_letter_find(struct str s, bool has_lines, struct card_letter *out)
{
    uint32_t c;

    for (size_t at = 0, n; at < s.n; at += n) {
        const struct range *r;

        n = letter_next(s, at, &c);
        if (c >= ' ' && c <= '~')
            continue;
        if (has_lines && is_line_or_tab(s, at))
            continue;
        r = letter_range_find(refused, sizeof(refused) / sizeof(refused[0]), c);
        if (r) {
            *out = (struct card_letter){c, at, r->what};
            return true;
        }
    }
    return false;
}

bool card_has_ink(struct str s)
{
    uint32_t c;

    for (size_t at = 0; at < s.n;) {
        at += letter_next(s, at, &c);
        if (!letter_range_find(blank, sizeof(blank) / sizeof(blank[0]), c))
            return true;
    }
    return false;
}
