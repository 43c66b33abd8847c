/* Writes the file that table.c reads. Any input gives either a file that the
 * reader accepts, or an error. Only the parts go into it, so the same parts
 * give the same bytes. */
#include "embed/table.h"

#include <stdlib.h>

#include "base/mem.h"

static enum err table_too_large(struct why *why)
{
    return why_err(why, ERR_LIMIT, "the model does not fit into %d bytes",
                   TABLE_BYTES_MAX);
}

static enum err check_parts(const struct table_parts *p, struct why *why)
{
    size_t n = p->n_words + p->n_phrases;

    if (p->n_words > TABLE_BYTES_MAX / TABLE_DIMS ||
        p->n_phrases > TABLE_PHRASES_MAX)
        return table_too_large(why);
    for (size_t i = 0; i < p->n_phrases; i++)
        if (p->phrases[i].first >= p->n_words ||
            p->phrases[i].second >= p->n_words)
            return why_err(why, ERR_BAD_REQUEST,
                           "phrase %zu is of words that there are not", i);
    for (size_t i = 0; i < n; i++)
        if (!table_scale_is_good(p->scales[i]))
            return why_err(why, ERR_BAD_REQUEST,
                           "the scale of row %zu is not from 0 to %g", i,
                           (double)TABLE_SCALE_MAX);
    if (!table_scale_is_good(p->unknown_scale) || p->unknown_scale == 0)
        return why_err(why, ERR_BAD_REQUEST,
                       "the scale of unknown characters is not above 0 and up "
                       "to %g",
                       (double)TABLE_SCALE_MAX);
    return OK;
}

static enum err table_too_alike(struct why *why)
{
    return why_err(why, ERR_LIMIT,
                   "too many phrases have nearly the same hash");
}

/* Put phrase i into the first free slot. ERR_EXISTS: it is a duplicate. */
static enum err table_put_phrase(const struct table_parts *p, uint32_t i,
                                 uint32_t *slots, uint32_t mask,
                                 struct why *why)
{
    struct table_phrase a = p->phrases[i];
    uint32_t hash = table_phrase_hash(a.first, a.second), at = hash & mask;
    uint32_t tries = 0;

    for (; slots[at]; at = (at + 1) & mask) {
        struct table_phrase b = p->phrases[TABLE_SLOT_NUMBER(slots[at]) - 1];

        if (a.first == b.first && a.second == b.second)
            return why_err(why, ERR_EXISTS, "phrase %u is there twice", i);
        if (++tries > VOCAB_MAX_ROW)
            return table_too_alike(why);
    }
    slots[at] = (hash & 0xffff0000u) | (i + 1);
    return OK;
}

static enum err write_phrases(const struct table_parts *p, struct buf *out,
                              struct why *why)
{
    uint32_t n = (uint32_t)p->n_phrases, n_slots = table_phrase_slots(n);
    uint32_t *slots;
    enum err e = OK;

    if (n == 0)
        return OK;
    slots = mem_array(n_slots, sizeof(*slots));
    for (uint32_t i = 0; i < n && !e; i++)
        e = table_put_phrase(p, i, slots, n_slots - 1, why);
    if (!e && !vocab_rows_end(slots, n_slots - 1))
        e = table_too_alike(why);
    buf_add(out, p->phrases, n * sizeof(*p->phrases));
    buf_add(out, slots, n_slots * sizeof(*slots));
    free(slots);
    return e;
}

static enum err write_words(const struct table_parts *p, struct buf *out,
                            struct why *why)
{
    return vocab_make(p->words, p->n_words, out, why);
}

static enum err write_rows(const struct table_parts *p, struct buf *out,
                           struct why *why)
{
    (void)why;
    buf_add(out, p->rows, (p->n_words + p->n_phrases) * TABLE_DIMS);
    return OK;
}

static enum err write_scales(const struct table_parts *p, struct buf *out,
                             struct why *why)
{
    (void)why;
    buf_add(out, p->scales, (p->n_words + p->n_phrases) * sizeof(float));
    return OK;
}

static const struct section {
    char tag[5];
    enum err (*write)(const struct table_parts *p, struct buf *out,
                      struct why *why);
} sections[] = {
    {TABLE_WORDS, write_words},
    {TABLE_PHRASES, write_phrases},
    {TABLE_ROWS, write_rows},
    {TABLE_SCALES, write_scales},
};
enum { N_SECTIONS = sizeof(sections) / sizeof(sections[0]) };

static void write_zeros(struct buf *out, size_t up_to)
{
    static const char zeros[TABLE_ALIGN * 2];

    while (out->n < up_to && !out->over) {
        size_t n = up_to - out->n;

        buf_add(out, zeros, n < sizeof(zeros) ? n : sizeof(zeros));
    }
}

static enum err write_sections(const struct table_parts *p, struct buf *out,
                               struct table_line lines[N_SECTIONS],
                               struct why *why)
{
    enum err e = OK;

    write_zeros(out, table_sections_at(N_SECTIONS));
    for (size_t i = 0; i < N_SECTIONS && !e && !out->over; i++) {
        write_zeros(out, table_align(out->n));
        memcpy(lines[i].tag, sections[i].tag, sizeof(lines[i].tag));
        lines[i].at = (uint32_t)out->n;
        e = sections[i].write(p, out, why);
        lines[i].n = (uint32_t)(out->n - lines[i].at);
    }
    if (!e && (out->over || out->n > TABLE_BYTES_MAX))
        e = table_too_large(why);
    return e;
}

static enum err table_write_parts(const struct table_parts *p, struct buf *out,
                                  struct why *why)
{
    struct table_head h = {
        .version = TABLE_VERSION,
        .dims = TABLE_DIMS,
        .n_words = (uint32_t)p->n_words,
        .n_phrases = (uint32_t)p->n_phrases,
        .n_sections = N_SECTIONS,
        .unknown_scale = p->unknown_scale,
    };
    struct table_line lines[N_SECTIONS] = {{.zero = 0}};
    enum err e = check_parts(p, why);

    if (!e)
        e = write_sections(p, out, lines, why);
    if (e)
        return e;
    memcpy(h.magic, TABLE_MAGIC, sizeof(h.magic));
    memcpy(out->p, &h, sizeof(h));
    memcpy(out->p + sizeof(h), lines, sizeof(lines));
    table_hash(buf_str(out), h.hash);
    memcpy(out->p, &h, sizeof(h));
    return OK;
}

enum err table_write(const struct table_parts *p, struct buf *out,
                     struct why *why)
{
    enum err e = table_write_parts(p, out, why);

    if (e)
        buf_clear(out);
    return e;
}
