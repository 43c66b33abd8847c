#ifndef EMBED_INTERNAL_H
#define EMBED_INTERNAL_H

/* What the files of embed/ share. From the bottom up:
 *
 *   vocab.c      pieces of words -> numbers, from bytes that lie in a file
 *   wordpiece.c  a word -> the numbers of its pieces
 *   table.c      the built-in model's file; table_write.c makes it
 *   builtin.c    text -> vector with it; inside.c: the one in the binary
 *   minilm_*.c   the transformer; transformer.c: the one in the binary
 *   spell.c      typing mistakes, by the words of the built-in model
 *   look.c       models as things to look at and to keep
 *   and, above all of these, what jobs.h lists
 *
 * Everything up to the transformer is pure and allocates nothing per text. */

#include "base/buf.h"
#include "base/cpu.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/words.h"
#include "embed/embed.h"

/* ---- vocab: pieces of words -> numbers ----
 *
 * Lies in a file as it is used: strings one after the other and an open hash
 * table of them. vocab_open checks every bound once, so that looking up need
 * not; the bytes are borrowed, 8-aligned. */

#define VOCAB_NONE UINT32_MAX

enum {
    VOCAB_MAX_PIECES = (1 << 20) - 1,
    VOCAB_PIECE_BYTES = 255, /* of the longest */
};

struct vocab {
    const uint32_t *ends;  /* of each string in text */
    const uint32_t *slots; /* number + 1 of a piece, tagged; 0: free */
    const char *text;
    uint32_t n, mask;
    uint32_t longest, longest_inside; /* bytes; inside: of "##...", without */
};

/* Borrows the bytes, which are trusted in nothing. ERR_BAD_CONFIG, and v is
 * untouched: they are not what vocab_make makes. */
MUST_USE enum err vocab_open(struct vocab *v, struct str bytes,
                             struct why *why);

/* Added to what is in `out`; the bytes are a multiple of eight. ERR_EXISTS: a
 * piece twice. ERR_LIMIT: too many, too long, too many of nearly the same hash,
 * or more than `out` takes. On an error nothing was added. */
MUST_USE enum err vocab_make(const struct str *pieces, size_t n,
                             struct buf *out, struct why *why);

/* `prefix` and then `piece` are looked up as one string: "##" for what is
 * inside a word. */
uint32_t vocab_find(const struct vocab *v, struct str prefix, struct str piece);

/* Empty where there is no such number. */
struct str vocab_piece(const struct vocab *v, uint32_t id);

/* vocab_find for who has the hash already: byte by byte, beginning with
 * VOCAB_HASH, the prefix first. */
#define VOCAB_HASH UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t vocab_hash(uint64_t hash, char c)
{
    return (hash ^ (uint8_t)c) * UINT64_C(0x9e3779b97f4a7c15);
}
uint32_t vocab_look(const struct vocab *v, uint64_t hash, struct str prefix,
                    struct str piece);

/* The rule of every open hash table that lies in a file: at most VOCAB_MAX_ROW
 * slots are taken in a row, so that nobody who writes texts can make a search
 * slow. There are mask + 1 slots, a power of two, and some of them are free. */
enum { VOCAB_MAX_ROW = 256 };
bool vocab_rows_end(const uint32_t *slots, uint32_t mask);

/* The longest piece that `rest` of a word begins with; how many bytes of it
 * that is, or zero: there is none. */
size_t wordpiece_first(const struct vocab *v, struct str rest, bool is_inside,
                       uint32_t *id);

/* The pieces of one normalised word, longest first from the left. False and
 * none, where some part of it is not in the vocabulary. A word has at most
 * WORD_MAX_CHARS pieces. */
MUST_USE bool wordpiece(const struct vocab *v, struct str word,
                        uint32_t ids[WORD_MAX_CHARS], size_t *n);

/* The pieces of a text, as the reference gives them without its marks of
 * beginning and end: unknown words are `unknown`. At most max, the first. */
size_t wordpieces(const struct vocab *v, struct str text, uint32_t unknown,
                  uint32_t *ids, size_t max);

/* ---- table: the built-in model's file, data/table.sbt ----
 *
 * Numbers are little endian, sections begin at multiples of 64, what lies
 * between them is zero; the same parts always make the same bytes. table.c
 * draws it. A row belongs to a word (or piece of one) by its number in the
 * vocabulary; those of phrases come after them. */

enum {
    TABLE_DIMS = 256,
    TABLE_BYTES_MAX = 16 * 1000 * 1000,
    TABLE_PHRASES_MAX = 0xffff,
    TABLE_HASH_BYTES = 32,
    TABLE_HEAD_BYTES = 64,
};
#define TABLE_SCALE_MAX 1000.0f

/* Two neighbouring words of a text that mean something together, by their
 * numbers in the vocabulary: "new", "york". */
struct table_phrase {
    uint32_t first, second;
};

/* Points into the bytes it was opened from. */
struct embed_table {
    struct vocab words;
    uint32_t n_phrases, phrase_mask;
    const struct table_phrase *phrases;
    const uint32_t *phrase_slots;
    const int8_t *rows; /* TABLE_DIMS each */
    const float *scales;
    float unknown_scale;
    const uint8_t *hash; /* SHA-256 of all that follows it in the file */
};

/* Borrows the bytes, 64-aligned. Every bound is checked, and the hash. */
MUST_USE enum err table_open(struct embed_table *t, struct str bytes,
                             struct why *why);

/* Only its words. */
MUST_USE enum err table_open_words(struct vocab *v, struct str bytes,
                                   struct why *why);

/* The row of a phrase, or VOCAB_NONE. */
uint32_t table_phrase(const struct embed_table *t, uint32_t first,
                      uint32_t second);

/* What a file is made of. A word's row is row * scale; so is that of a
 * character that no word knows, whose row is made from its number, with bytes
 * of any value. Scales: 0 to TABLE_SCALE_MAX, that of the unknown above 0. */
struct table_parts {
    const struct str *words;
    size_t n_words;
    const struct table_phrase *phrases;
    size_t n_phrases;
    const int8_t *rows;  /* n_words + n_phrases times TABLE_DIMS */
    const float *scales; /* n_words + n_phrases */
    float unknown_scale;
};

/* Appends to out, which is empty. ERR_EXISTS: a word or phrase twice.
 * ERR_LIMIT: more than TABLE_BYTES_MAX, or too many phrases of nearly the same
 * hash. ERR_BAD_REQUEST: parts that no file
 * can have. */
MUST_USE enum err table_write(const struct table_parts *p, struct buf *out,
                              struct why *why);

/* ---- builtin: text -> vector by a table ---- */

enum {
    BUILTIN_DIMS = TABLE_DIMS,
    BUILTIN_ENGLISH = 34523, /* pieces; those of other languages follow, see
                              * train/route */
    BUILTIN_ROWS_MAX = 512,  /* of one text: the first */
    BUILTIN_TEXT_BYTES_MAX = 64 * 1024, /* nothing behind them is looked at */
};

/* May be shared by threads. */
struct builtin {
    struct embed_table table;
    const struct vec_ops *ops;
    char hash[EMBED_HASH_CHARS + 1];
};

/* The one inside the binary; builtin_open_bytes: any other, whose bytes must
 * outlive it and be 64-aligned. Nothing to be closed. */
MUST_USE enum err builtin_open(struct builtin *b, struct why *why);
MUST_USE enum err builtin_open_bytes(struct builtin *b, struct str bytes,
                                     struct why *why);
const char *builtin_hash(const struct builtin *b);
size_t builtin_bytes(void); /* of the one inside the binary */

/* Only the words of the one inside the binary. The rest of the table is not
 * looked at, and its hash is not checked: a millisecond instead of thirty. */
MUST_USE enum err builtin_words(struct vocab *v, struct why *why);

/* Which rows a text has, in its order, that of a phrase behind its words; how
 * many. What has BUILTIN_UNKNOWN set
 * is a character that the table does not know, by its code point. */
#define BUILTIN_UNKNOWN 0x80000000u
size_t builtin_rows(const struct embed_table *t, struct str text,
                    uint32_t rows[BUILTIN_ROWS_MAX]);

/* One long, or all zero: there is nothing in the text. Allocates nothing, and
 * the vector is the same, bit for bit, on every processor. */
void builtin_embed(const struct builtin *b, struct str text,
                   float out[BUILTIN_DIMS]);

/* ---- minilm ---- */

enum {
    MINILM_DIMS = 384, /* of all-MiniLM-L6-v2, and the most there may be */
    MINILM_MAX_TOKENS = 256,
    MINILM_FILE_MAX = 256 << 20, /* bytes; all-MiniLM-L6-v2 has 24 MB */
};

struct minilm;
struct minilm_scratch;

/* Map the file and check it, its hash included. ERR_IO: it cannot be opened;
 * ERR_BAD_CONFIG: it is no good; ERR_NOMEM. The words say what is wrong with it
 * and, where that helps, how to get a good one.
 *
 * Until minilm_close the file must stay as it is, whatever its name: replace it
 * by rename, never by writing into it. One that is cut short meanwhile ends the
 * process (SIGBUS). */
MUST_USE enum err minilm_open(struct minilm **out, const char *path,
                              struct why *why);
void minilm_close(struct minilm *m);

/* The hash that is in the file, in hex; how many numbers a vector has. */
const char *minilm_hash(const struct minilm *m);
uint32_t minilm_dims(const struct minilm *m);

/* What one thread needs to use it, some 3 MB; NULL: no memory. `level`: at most
 * that of the processor. */
struct minilm_scratch *minilm_scratch_new(const struct minilm *m,
                                          enum cpu_level level);
void minilm_scratch_free(struct minilm_scratch *s);

/* Text -> vector, one long; all zero if the text has no pieces. m is shared by
 * threads, s is not. `out` has room for minilm_dims numbers. */
void minilm_embed(const struct minilm *m, struct minilm_scratch *s,
                  struct str text, float *out);

/* n texts -> n vectors, the same as one at a time and faster. */
void minilm_embed_many(const struct minilm *m, struct minilm_scratch *s,
                       const struct str *texts, size_t n, float *out);

/* Our file from what is published: the weights (safetensors, F16 or F32) and
 * the vocabulary (tokenizer.json). Deterministic. `out` is empty, and still is
 * on an error: ERR_BAD_REQUEST for what is no such model, ERR_NOMEM. */
MUST_USE enum err minilm_make(struct str safetensors, struct str tokenizer,
                              struct buf *out, struct why *why);

/* ---- the transformer inside the binary ----
 *
 * A file of minilm's that is linked into the program, with its own name in it.
 * (transformer.c) */

#define TRANSFORMER_NAME "signalbox-route"
enum { TRANSFORMER_DIMS = MINILM_DIMS };

MUST_USE enum err transformer_open(struct minilm **out, struct why *why);
size_t transformer_bytes(void);

/* ---- both ---- */

/* The table's vector in front and the transformer's behind, as vec_join joins
 * them. */
enum { BOTH_DIMS = BUILTIN_DIMS + TRANSFORMER_DIMS };

#endif
