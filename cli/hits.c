/* A grid cannot make parts of a cell bold, nor move a cell below its line.
 * Words are highlighted by the stems of the search, so "debugging" matches
 * "debug". */
#include "cli/hits.h"

#include "cli/grid.h"
#include "registry/index/index.h"

struct hits_row {
    struct hits_row *next;
    struct hit hit;
    struct hits_row *parts, **last_part;
};

/* The stems of the query. */

struct collecting {
    struct hits *hits;
    struct str *list;
};

static bool is_stem(const struct hits *h, struct str stem)
{
    for (size_t i = 0; i < h->n_stems; i++)
        if (str_eq(h->stems[i], stem))
            return true;
    return false;
}

static void on_query_word(void *ctx, struct str word, struct str stem)
{
    struct collecting *g = ctx;
    struct hits *h = g->hits;
    char *p;

    (void)word;
    if (h->n_stems == INDEX_QUERY_TERMS_MAX || is_stem(h, stem))
        return;
    p = arena_strdup(&h->arena, stem);
    if (p)
        g->list[h->n_stems++] = (struct str){p, stem.n};
}

void hits_init(struct hits *h, struct str query)
{
    struct collecting g = {.hits = h};

    *h = (struct hits){.n = 0};
    h->last = &h->first;
    arena_init(&h->arena, HITS_BYTES_MAX);
    g.list = arena_array(&h->arena, INDEX_QUERY_TERMS_MAX, sizeof(*g.list));
    h->stems = g.list;
    if (g.list)
        index_terms(query, on_query_word, &g);
}

void hits_fini(struct hits *h)
{
    arena_fini(&h->arena);
}

/* A copy on one line: runs of white space become one blank. */
static bool hits_copy_line(struct hits *h, struct str from, struct str *to)
{
    struct str s = str_head(from, HITS_TEXT_MAX);
    char *p = arena_alloc(&h->arena, s.n + 3);
    size_t n = 0;

    if (!p)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        bool is_space = s.p[i] && strchr(" \t\r\n", s.p[i]);

        if (!is_space)
            p[n++] = s.p[i];
        else if (n && p[n - 1] != ' ')
            p[n++] = ' ';
    }
    while (n && p[n - 1] == ' ')
        n--;
    n = str_tame(p, n);
    if (s.n < from.n) {
        p[n++] = '.';
        p[n++] = '.';
    }
    *to = (struct str){p, n};
    return true;
}

static struct hits_row *hits_row_for(struct hits *h, const struct hit *hit)
{
    struct hits_row *r = arena_alloc(&h->arena, sizeof(*r));

    if (r) {
        r->hit = *hit;
        r->last_part = &r->parts;
    }
    if (!r || !hits_copy_line(h, hit->agent, &r->hit.agent) ||
        !hits_copy_line(h, hit->skill, &r->hit.skill) ||
        !hits_copy_line(h, hit->description, &r->hit.description)) {
        h->is_over = true;
        return NULL;
    }
    if (!r->hit.skill.n)
        r->hit.skill = STR("-");
    return r;
}

void hits_add(struct hits *h, const struct hit *hit)
{
    struct hits_row *r = hits_row_for(h, hit);

    if (!r)
        return;
    *h->last = h->newest = r;
    h->last = &r->next;
    h->n++;
}

void hits_add_part(struct hits *h, const struct hit *part)
{
    struct hits_row *r = h->newest ? hits_row_for(h, part) : NULL;

    if (!r)
        return;
    *h->newest->last_part = r;
    h->newest->last_part = &r->next;
}

/* Writing. */

struct page {
    const struct hits *hits;
    struct buf *out;
    unsigned rank, agent, skill; /* columns */
    unsigned left;               /* for the description; zero: no limit */
    unsigned width;
    bool is_below;
    bool colour, unicode;
};

static void hits_widen(unsigned *columns, struct str s)
{
    unsigned w = text_columns(s);

    if (w > HITS_NAME_COLUMNS)
        w = HITS_NAME_COLUMNS;
    if (w > *columns)
        *columns = w;
}

static void hits_fit_columns(struct page *p)
{
    unsigned used;

    p->rank = 1;
    for (size_t n = p->hits->n; n >= 10; n /= 10)
        p->rank++;
    p->agent = p->skill = 5; /* the widths of the titles */
    for (const struct hits_row *r = p->hits->first; r; r = r->next) {
        hits_widen(&p->agent, r->hit.agent);
        hits_widen(&p->skill, r->hit.skill);
        for (const struct hits_row *k = r->parts; k; k = k->next)
            hits_widen(&p->skill, k->hit.skill);
    }
    used = p->rank + 2 + p->agent + 2 + p->skill + 2 + 5 + 2 + 8 + 2 +
           HITS_BAR_CELLS + 2;
    /* Shorten the names before a line breaks, the longer one first. */
    for (; p->width && used > p->width + 2 &&
           (p->agent > HITS_NAME_LEAST || p->skill > HITS_NAME_LEAST);
         used--)
        (*(p->agent > p->skill ? &p->agent : &p->skill))--;
    p->is_below = p->width && p->width < used + HITS_BESIDE;
    if (p->is_below)
        used = p->rank + 2;
    p->left = p->width > used ? p->width - used : 0;
}

static struct str dots(const struct page *p)
{
    return p->unicode ? STR("\u2026") : STR("..");
}

static void hits_pad(const struct page *p, unsigned n)
{
    buf_addf(p->out, "%*s", (int)n, "");
}

static void hits_write_name(const struct page *p, struct str name,
                            unsigned columns)
{
    hits_pad(p, columns - text_add_cut(p->out, name, columns, p->unicode) + 2);
}

static void hits_draw_bar(const struct page *p, double v, const char *colour,
                          unsigned columns)
{
    text_add_bar(p->out, v, HITS_BAR_CELLS, p->colour ? colour : NULL,
                 p->unicode);
    hits_pad(p, columns - HITS_BAR_CELLS + 2);
}

/* Text with the words of the query in bold. */

struct marking {
    const struct page *page;
    struct str rest; /* what is not written yet */
};

static void hits_on_word(void *ctx, struct str word, struct str stem)
{
    struct marking *m = ctx;
    struct buf *out = m->page->out;

    if (!is_stem(m->page->hits, stem) || word.p < m->rest.p)
        return;
    buf_add(out, m->rest.p, (size_t)(word.p - m->rest.p));
    buf_addf(out, "\033[1m%.*s\033[0m", STR_ARG(word));
    m->rest =
        str_sub(m->rest, (size_t)(word.p - m->rest.p) + word.n, m->rest.n);
}

static void write_marked(const struct page *p, struct str text)
{
    struct marking m = {p, text};

    if (p->colour && p->hits->n_stems)
        index_terms(text, hits_on_word, &m);
    buf_add_str(p->out, m.rest);
}

/* Take the start of *rest that fits into a line, with whole words if possible.
 */
static struct str hits_cut_line(struct str *rest, unsigned columns)
{
    struct str line = text_cut(*rest, columns);
    size_t n = line.n;

    if (line.n < rest->n && rest->p[line.n] != ' ') {
        while (n && line.p[n - 1] != ' ')
            n--;
        if (n)
            line.n = n;
    }
    *rest = str_sub(*rest, line.n, rest->n);
    while (rest->n && rest->p[0] == ' ')
        *rest = str_sub(*rest, 1, rest->n);
    while (line.n && line.p[line.n - 1] == ' ')
        line.n--;
    return line;
}

/* The last line, cut to its width. */
static void hits_write_last_line(const struct page *p, struct str text,
                                 unsigned columns)
{
    if (!columns || text_columns(text) <= columns) {
        write_marked(p, text);
        return;
    }
    text = text_cut(text, columns - text_columns(dots(p)));
    while (text.n && text.p[text.n - 1] == ' ')
        text.n--;
    write_marked(p, text);
    buf_add_str(p->out, dots(p));
}

static void write_below(const struct page *p, struct str text)
{
    for (int i = 1; text.n && i <= HITS_LINES; i++) {
        hits_pad(p, p->rank + 2);
        if (i == HITS_LINES || text_columns(text) <= p->left) {
            hits_write_last_line(p, text, p->left);
            text.n = 0;
        } else {
            write_marked(p, hits_cut_line(&text, p->left));
        }
        text_end_line(p->out);
    }
}

/* The figures, under their bars. */
static void write_part(const struct page *p, const struct hits_row *k)
{
    hits_pad(p, p->rank + 2 + p->agent + 2);
    hits_write_name(p, k->hit.skill, p->skill);
    buf_addf(p->out, "%.3f  %.3f     %.3f  ", k->hit.score, k->hit.semantic,
             k->hit.text);
    if (!p->is_below)
        hits_write_last_line(p, k->hit.description, p->left);
    text_end_line(p->out);
}

static void hits_write_row(const struct page *p, size_t rank,
                           const struct hits_row *r)
{
    buf_addf(p->out, "%*zu  ", (int)p->rank, rank);
    hits_write_name(p, r->hit.agent, p->agent);
    hits_write_name(p, r->hit.skill, p->skill);
    buf_addf(p->out, "%.3f  ", r->hit.score);
    hits_draw_bar(p, r->hit.semantic, "\033[36m", 8);
    hits_draw_bar(p, r->hit.text, "\033[35m", HITS_BAR_CELLS);
    if (!p->is_below)
        hits_write_last_line(p, r->hit.description, p->left);
    text_end_line(p->out);
    if (p->is_below)
        write_below(p, r->hit.description);
    for (const struct hits_row *k = r->parts; k; k = k->next)
        write_part(p, k);
}

void hits_write(const struct hits *h, struct buf *out, unsigned width,
                bool colour, bool unicode)
{
    struct page p = {.hits = h,
                     .out = out,
                     .width = width,
                     .colour = colour,
                     .unicode = unicode};
    size_t rank = 0;

    hits_fit_columns(&p);
    if (colour)
        buf_add_str(out, STR("\033[1m"));
    buf_addf(out, "%*s  %-*s  %-*s  SCORE  SEMANTIC  %-*s%s", (int)p.rank, "#",
             (int)p.agent, "AGENT", (int)p.skill, "SKILL",
             p.is_below ? 0 : HITS_BAR_CELLS, "TEXT",
             p.is_below ? "" : "  DESCRIPTION");
    if (colour)
        buf_add_str(out, STR("\033[0m"));
    text_end_line(out);
    for (const struct hits_row *r = h->first; r; r = r->next)
        hits_write_row(&p, ++rank, r);
    out->over = out->over || h->is_over;
}
