/* The lines of a long message that contain its request.
 *
 * A pasted log or a forwarded mail says a lot, and one line of it says what the
 * sender wants. The vector of the whole drowns that line. So a long message is
 * cut into parts (a line, or sentences of a long line), and each part gets
 * points for signs of a request: a question mark, "please", "could you", an
 * imperative, the first or the last paragraph. Parts that are not prose (logs,
 * tables, headers of mails), greetings and signatures lose points.
 *
 * The cards have no influence: choosing the part that fits a card best was not
 * tried. Judged by eye, the first part is the right one in about 20 of the 22
 * long messages of test/quality/fleets.
 *
 * One pass without allocation: the best PARTS_MAX parts are kept. */
#include "choose/route.h"

#include <ctype.h>

#include "base/utf8.h"

enum { PHRASE_BYTES = 512 }; /* of a part in lower case */

/* ---- signs of a request ---- */

/* Phrases have blanks around them, as has the text that is searched. Scripts
 * without blanks between words are searched as they are. */
static const char *const asking[] = {
    " please ",
    " pls ",
    " plz ",
    " can you ",
    " could you ",
    " would you ",
    " will you ",
    " can somebody ",
    " can someone ",
    " could somebody ",
    " could someone ",
    " can we ",
    " could we ",
    " help me ",
    " need help ",
    " i need ",
    " we need ",
    " i'd like ",
    " i would like ",
    " we'd like ",
    " i want ",
    " we want ",
    " let me know ",
    " what would ",
    " how do ",
    " how can ",
    " how to ",
    " how would ",
    " why does ",
    " why is ",
    " why do ",
    " why are ",
    " why did ",
    " what do ",
    " what does ",
    " what should ",
    " should i ",
    " should we ",
    " where does ",
    " where do ",
    " is it possible ",
    " any idea ",
    " have a look ",
    " take a look ",
    " look at this ",
    " tell me ",
    " show me ",
    " bitte ",
    " kannst du ",
    " können sie ",
    " könntest du ",
    " könnten sie ",
    " ich brauche ",
    " wir brauchen ",
    " por favor ",
    " puedes ",
    " podrías ",
    " necesito ",
    " s'il te pla",
    " s'il vous pla",
    " peux-tu ",
    " pouvez-vous ",
    " pourriez-vous ",
    " j'ai besoin ",
    "请",
    "帮我",
    "能不能",
    "可以",
    "麻烦",
    "ください",
};

static const char *const imperatives[] = {
    " add ",    " analyse ",     " analyze ",   " answer ",    " arrange ",
    " book ",   " build ",       " calculate ", " cancel ",    " change ",
    " check ",  " clean ",       " compare ",   " convert ",   " create ",
    " debug ",  " deploy ",      " draft ",     " explain ",   " find ",
    " fix ",    " generate ",    " get ",       " give ",      " go ",
    " help ",   " investigate ", " list ",      " make ",      " move ",
    " order ",  " plan ",        " prepare ",   " put ",       " rebook ",
    " remind ", " remove ",      " rename ",    " reply ",     " reschedule ",
    " review ", " rewrite ",     " run ",       " schedule ",  " send ",
    " set ",    " show ",        " sort ",      " summarise ", " summarize ",
    " tell ",   " translate ",   " turn ",      " update ",    " work ",
    " write ",
};

static const char *const signing[] = {
    " best regards",
    " kind regards",
    " warm regards",
    " regards",
    " yours sincerely",
    " sincerely",
    " best wishes",
    " with kind regards",
    " cheers",
    " many thanks",
    " thanks,",
    " thank you",
    " dear ",
    " hi ",
    " hello ",
    " mit freundlichen",
    " liebe grüße",
    " cordialement",
    " saludos",
    " sent from my ",
    " this message may contain",
    " big hug",
};

static bool has_any(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(text, list[i]))
            return true;
    return false;
}

static bool begins_with_any(const char *text, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, list[i], strlen(list[i])) == 0)
            return true;
    return false;
}

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

/* Lower case, one blank between words and at both ends; apostrophes and commas
 * stay. */
static void make_plain(struct str s, char out[PHRASE_BYTES])
{
    size_t n = 0;

    out[n++] = ' ';
    for (size_t i = 0; i < s.n && n + 2 < PHRASE_BYTES; i++) {
        char c = str_lower(s.p[i]);
        bool is_part = isalnum((unsigned char)c) || (unsigned char)c >= 0x80 ||
                       c == '\'' || c == '-' || c == ',';

        if (c == ',' && n + 3 < PHRASE_BYTES) {
            out[n++] = ',';
            out[n++] = ' ';
        } else if (is_part) {
            out[n++] = c;
        } else if (out[n - 1] != ' ') {
            out[n++] = ' ';
        }
    }
    if (out[n - 1] != ' ')
        out[n++] = ' ';
    out[n] = '\0';
}

/* Mostly letters and blanks, and several words. */
static bool is_prose(struct str s)
{
    size_t n_good = 0, n_blanks = 0, n_high = 0;

    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        n_blanks += c == ' ';
        n_high += c >= 0x80;
        n_good += isalpha(c) || c == ' ' || c >= 0x80;
    }
    return 100 * n_good >= 86 * s.n && (n_blanks >= 2 || n_high >= 12);
}

/* "Subject: ...", "[INFO] ...", "2024-05-01 ...", "> ...". */
static bool is_machine(struct str s)
{
    size_t colon = str_find(s, ':', 0), blank = str_find(s, ' ', 0);

    return s.p[0] == '>' || s.p[0] == '[' || s.p[0] == '<' || s.p[0] == '{' ||
           (isdigit((unsigned char)s.p[0]) && blank > 2) ||
           (colon < blank && colon + 1 < s.n);
}

static int part_points(struct str s)
{
    char plain[PHRASE_BYTES];
    int points = 0;

    if (!is_prose(s))
        return -4;
    make_plain(s, plain);
    points += memchr(s.p, '?', s.n) || strstr(plain, "？") ? 3 : 0;
    points += has_any(plain, asking, COUNT(asking)) ? 3 : 0;
    points += begins_with_any(plain, imperatives, COUNT(imperatives)) ? 2 : 0;
    points -= begins_with_any(plain, signing, COUNT(signing)) ? 2 : 0;
    points -= is_machine(s) ? 2 : 0;
    return points;
}

/* ---- the parts ---- */

/* The index after the end of a sentence, or s.n. */
static size_t sentence_end(struct str s, size_t from)
{
    for (size_t i = from; i < s.n; i++) {
        bool is_end = s.p[i] == '.' || s.p[i] == '?' || s.p[i] == '!';

        if (is_end && (i + 1 == s.n || str_is_space(s.p[i + 1])))
            return i + 1;
        if (i + 3 <= s.n &&
            (memcmp(s.p + i, "。", 3) == 0 || memcmp(s.p + i, "？", 3) == 0))
            return i + 3;
    }
    return s.n;
}

struct part_finder {
    struct part *parts;
    size_t n;
    size_t paragraph; /* number of the present one */
    bool is_in_one;
};

/* Keep the best; equal ones stay in the order of the text. */
static void keep_part(struct part_finder *f, struct part p)
{
    size_t at = f->n;

    if (f->n < PARTS_MAX)
        f->n++;
    else if (f->parts[--at].points >= p.points)
        return;
    for (; at > 0 && f->parts[at - 1].points < p.points; at--)
        f->parts[at] = f->parts[at - 1];
    f->parts[at] = p;
}

/* Group sentences up to PART_BYTES; a longer one is cut. */
static void parts_take_line(struct part_finder *f, struct str line)
{
    while (line.n) {
        struct str near = str_sub(line, 0, PART_BYTES + 1);
        size_t to = sentence_end(near, 0);
        struct str piece;

        while (to < near.n) {
            size_t more = sentence_end(near, to);

            if (more > PART_BYTES)
                break;
            to = more;
        }
        piece = str_head(str_sub(near, 0, to), PART_BYTES);
        line = str_trim_space(str_sub(line, piece.n, line.n));
        piece = str_trim_space(piece);
        keep_part(f, (struct part){.text = piece,
                                   .points = part_points(piece),
                                   .paragraph = f->paragraph});
    }
}

static void parts_take_text(struct part_finder *f, struct str text)
{
    while (text.n) {
        struct str line = str_trim_space(str_cut(&text, '\n'));

        if (!line.n) {
            f->paragraph += f->is_in_one;
            f->is_in_one = false;
            continue;
        }
        f->is_in_one = true;
        parts_take_line(f, line);
    }
    f->paragraph += f->is_in_one;
    f->is_in_one = false;
}

/* The request is more often first or last than in the middle. */
static void parts_weigh(struct part_finder *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct part p = f->parts[i];
        size_t at = i;

        if (p.points >= 0 &&
            (p.paragraph == 0 || p.paragraph + 1 == f->paragraph))
            p.points += 2;
        for (; at > 0 && f->parts[at - 1].points < p.points; at--)
            f->parts[at] = f->parts[at - 1];
        f->parts[at] = p;
    }
}

/* The end of a message that is too long counts as well as its beginning. */
size_t parts_find(struct str text, struct part parts[PARTS_MAX])
{
    struct part_finder f = {.parts = parts};
    struct str head = str_head(text, PARTS_TEXT_MAX / 2);
    size_t tail =
        text.n > PARTS_TEXT_MAX ? text.n - PARTS_TEXT_MAX / 2 : head.n;

    if (text.n <= PARTS_TEXT_MAX)
        head = text, tail = text.n;
    while (tail < text.n && utf8_is_tail((unsigned char)text.p[tail]))
        tail++;
    parts_take_text(&f, head);
    parts_take_text(&f, str_sub(text, tail, text.n));
    parts_weigh(&f);
    return f.n;
}
