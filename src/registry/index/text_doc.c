/* The words that a document is found by: its own name, description, tags and
 * examples, and with less weight the name and description of its agent. The
 * order matters, because only the first INDEX_DOC_TERMS_MAX words count.
 *
 * Names are written for machines. Their parts count ("getAlarms": get, alarms),
 * and so does the whole name ("getalarms"), which users copy. A skill's name
 * may be written by people instead; then all of its words count ("Convert .docx
 * to PDF"). */
#include "registry/index/text.h"

#include "base/fault.h"
#include "model/profile.h"

enum { PROFILE_BYTES = 256 * 1024 };

static bool text_has_count(const struct text *t, size_t from, uint32_t term)
{
    for (size_t i = from; i < t->n_counts; i++)
        if (t->counts[i].term == term)
            return true;
    return false;
}

/* Count the words of a text. `is_new`: only words that are not among the counts
 * from `from` on. */
static enum err text_count_words(struct text *t, struct str text,
                                 uint32_t weight, bool is_new, size_t from)
{
    struct terms walk;
    uint32_t term;
    enum err e;

    terms_begin(&walk, t->stemmer, text);
    while (t->n_counts < INDEX_DOC_TERMS_MAX && terms_next(&walk)) {
        e = text_intern(t, walk.stem, &term);
        if (e)
            return e;
        if (!is_new || !text_has_count(t, from, term))
            t->counts[t->n_counts++] = (struct text_count){term, weight};
    }
    return OK;
}

static enum err text_count_list(struct text *t, struct strs list,
                                uint32_t weight)
{
    enum err e = OK;

    for (size_t i = 0; i < list.n && !e; i++)
        e = text_count_words(t, list.list[i], weight, false, 0);
    return e;
}

/* The part after the last dot; profile.h says why. */
static struct str name_last_part(struct str name)
{
    size_t dot = name.n;

    while (dot > 0 && name.p[dot - 1] != '.')
        dot--;
    return dot < name.n ? str_sub(name, dot, name.n) : name;
}

/* `more`: texts of which only words that the rest lacks are counted. */
static enum err text_count_profile(struct text *t, struct str name,
                                   struct str description,
                                   const struct str more[2], uint32_t weight)
{
    size_t from = t->n_counts;
    struct buf text;
    enum err e;

    buf_init(&text, PROFILE_BYTES);
    profile_add(&text, str_head(name, PROFILE_BYTES / 4),
                str_head(description, PROFILE_BYTES / 4));
    e = text.over ? ERR_LIMIT : OK;
    if (!e)
        e = text_count_words(t, buf_str(&text), weight, false, 0);
    buf_fini(&text);
    for (size_t i = 0; i < 2 && !e; i++)
        e = text_count_words(t, more[i], weight, true, from);
    return e;
}

static enum err text_count_skill(struct text *t, const struct skill *s)
{
    bool is_id = str_eq(s->name, s->id);
    const struct str more[2] = {is_id ? name_last_part(s->name) : s->name, {0}};
    enum err e = text_count_profile(t, s->name, s->description, more, TEXT_OWN);

    if (!e)
        e = text_count_list(
            t, s->tags, PLANTED("index.light_tags") ? TEXT_AGENT : TEXT_OWN);
    return e ? e : text_count_list(t, s->examples, TEXT_OWN);
}

/* Drop terms that were interned for a document that failed. */
static void text_drop_counts(struct text *t)
{
    for (size_t i = 0; i < t->n_counts; i++)
        text_let_go(t, t->counts[i].term);
    t->n_counts = 0;
}

enum err text_prepare(struct text *t, const struct agent *a,
                      const struct skill *s, struct text_doc **out)
{
    enum err e;

    t->n_counts = 0;
    e = s ? text_count_skill(t, s) : OK;
    if (!e) {
        const struct str more[2] = {name_last_part(a->name), a->title};

        e = text_count_profile(t, a->name, a->description, more,
                               s ? TEXT_AGENT : TEXT_OWN);
    }
    if (!e)
        return text_doc_make(t, out);
    text_drop_counts(t);
    return e;
}

uint32_t text_terms_end(const struct text *t)
{
    return t->n_terms;
}

struct str text_stem(const struct text *t, uint32_t term)
{
    const struct text_term *m = t->terms[term].term;

    return m ? (struct str){m->stem, m->stem_n} : STR("");
}

size_t text_words(const struct text *t, uint32_t doc, struct text_word *out)
{
    const struct text_doc *d = doc < t->docs_cap ? t->docs[doc] : NULL;

    for (uint32_t i = 0; d && i < d->n; i++)
        out[i] = (struct text_word){d->entries[i].term, d->entries[i].count};
    return d ? d->n : 0;
}

enum err text_prepare_words(struct text *t, const struct str *stems,
                            size_t n_stems, const struct text_word *words,
                            size_t n, struct text_doc **out)
{
    size_t length = 0;
    enum err e = n <= INDEX_DOC_TERMS_MAX ? OK : ERR_BAD_REQUEST;
    uint32_t term;

    t->n_counts = 0;
    for (size_t i = 0; i < n && !e; i++) {
        length += words[i].count;
        if (words[i].term >= n_stems || !words[i].count ||
            words[i].count > TEXT_LENGTH_MAX || length > TEXT_LENGTH_MAX ||
            (i && words[i].term <= words[i - 1].term) ||
            !stems[words[i].term].n || stems[words[i].term].n > INDEX_TERM_MAX)
            e = ERR_BAD_REQUEST;
        if (!e)
            e = text_intern(t, stems[words[i].term], &term);
        if (!e)
            t->counts[t->n_counts++] =
                (struct text_count){term, words[i].count};
    }
    if (!e)
        return text_doc_make(t, out);
    text_drop_counts(t);
    return e;
}
