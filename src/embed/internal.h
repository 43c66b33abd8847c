#ifndef EMBED_INTERNAL_H
#define EMBED_INTERNAL_H

/* Shared by the files of embed/. From the bottom up:
 *
 *   vocab.c           pieces of words -> ids, from bytes of a file
 *   wordpiece.c       a word -> the ids of its pieces
 *   table.c           the built-in model's file; table_write.c makes it
 *   builtin.c         text -> vector with it; builtin_models.c: the one in the
 *                     binary
 *   minilm_*.c        the transformer; transformer.c: the one in the binary
 *   spell.c           typing mistakes, by the words of the built-in model
 *   embed_look.c      inspecting and installing models
 *   and, above all of these, the files that jobs.h lists
 *
 * Everything up to the transformer is pure and allocates nothing per text. */

#include "base/buf.h"
#include "base/cpu.h"
#include "base/str.h"
#include "base/vec.h"
#include "base/words.h"
#include "embed/embed.h"

/* ---- vocab: pieces of words -> ids ----
 *
 * Used in place in a file: strings one after the other and an open hash table
 * of them. vocab_open checks every bound once, so that lookups need not; the
 * bytes are borrowed and 8-aligned. */

#define VOCAB_NONE UINT32_MAX

enum {
    VOCAB_MAX_PIECES = (1 << 20) - 1,
    VOCAB_PIECE_BYTES = 255, /* of the longest piece */
};

struct vocab {
    const uint32_t *ends;  /* of each string in text */
    const uint32_t *slots; /* id + 1 of a piece, tagged; 0: free */
    const char *text;
    uint32_t n, mask;
    uint32_t longest, longest_inside; /* in bytes; inside: of "##...",
                                       * without it */
};

/* Borrows the bytes, which are not trusted. ERR_BAD_CONFIG, with v untouched,
 * if vocab_make did not make them. */
MUST_USE enum err vocab_open(struct vocab *v, struct str bytes,
                             struct why *why);

/* Append to `out`, a multiple of eight bytes. ERR_EXISTS: a duplicate piece.
 * ERR_LIMIT: too many, too long, too many with nearly the same hash, or `out`
 * is full. On an error nothing is appended. */
MUST_USE enum err vocab_make(const struct str *pieces, size_t n,
                             struct buf *out, struct why *why);

/* Looks up `prefix` and `piece` as one string; the prefix is "##" inside a
 * word. */
uint32_t vocab_find(const struct vocab *v, struct str prefix, struct str piece);

/* Empty if there is no such id. */
struct str vocab_piece(const struct vocab *v, uint32_t id);

/* The hash for vocab_look, byte by byte, starting with VOCAB_HASH, the prefix
 * first. */
#define VOCAB_HASH UINT64_C(0x9e3779b97f4a7c15)
static inline uint64_t vocab_hash(uint64_t hash, char c)
{
    return (hash ^ (uint8_t)c) * UINT64_C(0x9e3779b97f4a7c15);
}
uint32_t vocab_look(const struct vocab *v, uint64_t hash, struct str prefix,
                    struct str piece);

/* The rule for every open hash table in a file: at most VOCAB_MAX_ROW
 * consecutive slots are taken, so that no text can make a lookup slow. There
 * are mask + 1 slots, a power of two, and some of them are free. */
enum { VOCAB_MAX_ROW = 256 };
bool vocab_rows_end(const uint32_t *slots, uint32_t mask);

/* The longest piece at the beginning of `rest` of a word. Returns its length,
 * or zero if there is none. */
size_t wordpiece_first(const struct vocab *v, struct str rest, bool is_inside,
                       uint32_t *id);

/* The pieces of one normalised word, longest first from the left. False, with
 * none, if a part of it is not in the vocabulary. A word has at most
 * WORD_MAX_CHARS pieces. */
MUST_USE bool wordpiece(const struct vocab *v, struct str word,
                        uint32_t ids[WORD_MAX_CHARS], size_t *n);

/* The pieces of a text as in the reference, without its marks of beginning and
 * end; unknown words become `unknown`. At most the first max. */
size_t wordpieces(const struct vocab *v, struct str text, uint32_t unknown,
                  uint32_t *ids, size_t max);

/* ---- table: the built-in model's file, data/table.sbt ----
 *
 * Numbers are little-endian, sections begin at multiples of 64, and the gaps
 * are zero; the same parts always give the same bytes. table.c has a drawing. A
 * row belongs to a word (or piece) by its id in the vocabulary; the rows of
 * phrases follow. */

enum {
    TABLE_DIMS = 256,
    TABLE_BYTES_MAX = 16 * 1000 * 1000,
    TABLE_PHRASES_MAX = 0xffff,
    TABLE_HASH_BYTES = 32,
    TABLE_HEAD_BYTES = 64,
};
#define TABLE_SCALE_MAX 1000.0f

/* Two neighbouring words with a meaning of their own, by their ids: "new",
 * "york". */
struct table_phrase {
    uint32_t first, second;
};

/* Points into the bytes that it was opened from. */
struct embed_table {
    struct vocab words;
    uint32_t n_phrases, phrase_mask;
    const struct table_phrase *phrases;
    const uint32_t *phrase_slots;
    const int8_t *rows; /* TABLE_DIMS numbers each */
    const float *scales;
    float unknown_scale;
    const uint8_t *hash; /* SHA-256 of everything after it in the file */
};

/* Borrows the bytes, 64-aligned. Checks every bound and the hash. */
MUST_USE enum err table_open(struct embed_table *t, struct str bytes,
                             struct why *why);

/* Only its words. */
MUST_USE enum err table_open_words(struct vocab *v, struct str bytes,
                                   struct why *why);

/* The row of a phrase, or VOCAB_NONE. */
uint32_t table_phrase(const struct embed_table *t, uint32_t first,
                      uint32_t second);

/* The content of a file. The vector of a word is row * scale; so is that of a
 * character without a word, whose row is derived from its code point and may
 * have bytes of any value. Scales: 0 to TABLE_SCALE_MAX; the scale of unknown
 * characters is above 0. */
struct table_parts {
    const struct str *words;
    size_t n_words;
    const struct table_phrase *phrases;
    size_t n_phrases;
    const int8_t *rows;  /* (n_words + n_phrases) * TABLE_DIMS */
    const float *scales; /* n_words + n_phrases */
    float unknown_scale;
};

/* Appends to out, which is empty. ERR_EXISTS: a duplicate word or phrase.
 * ERR_LIMIT: more than TABLE_BYTES_MAX, or too many phrases with nearly the
 * same hash. ERR_BAD_REQUEST: invalid parts. */
MUST_USE enum err table_write(const struct table_parts *p, struct buf *out,
                              struct why *why);

/* ---- builtin: text -> vector by a table ---- */

enum {
    BUILTIN_DIMS = TABLE_DIMS,
    BUILTIN_ENGLISH = 34523, /* pieces; those of other languages follow, see
                              * train/route */
    BUILTIN_ROWS_MAX = 512,  /* rows per text; the first ones */
    BUILTIN_TEXT_BYTES_MAX = 64 * 1024, /* the rest is ignored */
};

/* May be shared by threads. */
struct builtin {
    struct embed_table table;
    const struct vec_ops *ops;
    char hash[EMBED_HASH_CHARS + 1];
};

/* The table inside the binary, or with builtin_open_bytes any other, whose
 * bytes must outlive it and be 64-aligned. Needs no close. */
MUST_USE enum err builtin_open(struct builtin *b, struct why *why);
MUST_USE enum err builtin_open_bytes(struct builtin *b, struct str bytes,
                                     struct why *why);
const char *builtin_hash(const struct builtin *b);
size_t builtin_bytes(void); /* of the one inside the binary */

/* Only the words of the table inside the binary. The rest is not read, and the
 * hash is not checked: a millisecond instead of thirty. */
MUST_USE enum err builtin_words(struct vocab *v, struct why *why);

/* The rows of a text, in its order, that of a phrase after its words; returns
 * how many. A row with BUILTIN_UNKNOWN set is the code point of a character
 * that the table does not know. */
#define BUILTIN_UNKNOWN 0x80000000u
size_t builtin_rows(const struct embed_table *t, struct str text,
                    uint32_t rows[BUILTIN_ROWS_MAX]);

/* A unit vector, or all zero if the text has no content. Allocates nothing; the
 * vector is bit-identical on every processor. */
void builtin_embed(const struct builtin *b, struct str text,
                   float out[BUILTIN_DIMS]);

/* ---- minilm ---- */

enum {
    MINILM_DIMS = 384, /* of all-MiniLM-L6-v2, and the maximum */
    MINILM_MAX_TOKENS = 256,
    MINILM_FILE_MAX = 256 << 20, /* bytes; all-MiniLM-L6-v2 has 24 MB */
};

struct minilm;
struct minilm_scratch;

/* Map the file and check it, including its hash. ERR_IO: it cannot be opened;
 * ERR_BAD_CONFIG: it is invalid; ERR_NOMEM. The message says what is wrong and,
 * where that helps, how to get a valid one.
 *
 * Until minilm_close the content of the file must not change: replace it by
 * rename, never by writing into it. Truncating it meanwhile ends the process
 * (SIGBUS). */
MUST_USE enum err minilm_open(struct minilm **out, const char *path,
                              struct why *why);
void minilm_close(struct minilm *m);

/* The hash in the file, in hex; the length of a vector. */
const char *minilm_hash(const struct minilm *m);
uint32_t minilm_dims(const struct minilm *m);

/* The memory that one thread needs, some 3 MB; NULL: no memory. `level` is
 * limited to that of the processor. */
struct minilm_scratch *minilm_scratch_new(const struct minilm *m,
                                          enum cpu_level level);
void minilm_scratch_free(struct minilm_scratch *s);

/* Text -> unit vector; all zero if the text has no pieces. m is shared by
 * threads, s is not. `out` has room for minilm_dims numbers. */
void minilm_embed(const struct minilm *m, struct minilm_scratch *s,
                  struct str text, float *out);

/* n texts -> n vectors, equal to one at a time, and faster. */
void minilm_embed_many(const struct minilm *m, struct minilm_scratch *s,
                       const struct str *texts, size_t n, float *out);

/* Make our file from the published ones: the weights (safetensors, F16 or F32)
 * and the vocabulary (tokenizer.json). Deterministic. `out` is empty, and stays
 * so on an error: ERR_BAD_REQUEST if it is not such a model, ERR_NOMEM. */
MUST_USE enum err minilm_make(struct str safetensors, struct str tokenizer,
                              struct buf *out, struct why *why);

/* ---- the transformer inside the binary ----
 *
 * A minilm file that is linked into the program, with its own name in it.
 * (transformer.c) */

#define TRANSFORMER_NAME "signalbox-route"
enum { TRANSFORMER_DIMS = MINILM_DIMS };

MUST_USE enum err transformer_open(struct minilm **out, struct why *why);
size_t transformer_bytes(void);

/* ---- both ---- */

/* The table's vector first and the transformer's after it, joined by
 * vec_join. */
enum { BOTH_DIMS = BUILTIN_DIMS + TRANSFORMER_DIMS };

#endif
