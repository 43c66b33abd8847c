/* Texts in, what our tokeniser makes of them out.
 *
 *   words_peer words          the words of each text, a space between them
 *   words_peer ids VOCABULARY the numbers of its pieces; in the file each piece
 *                             is a line, and "[UNK]" is among them
 *
 * On standard input a text is its length, four bytes with the lowest first,
 * and its bytes; each becomes a line. test/peers/words_npm.js says the same of
 * what the reference makes of them. */
#include <stdio.h>
#include <stdlib.h>

#include "embed/internal.h"

enum { MAX_BYTES = 64 << 20, MAX_IDS = 1 << 20 };

__attribute__((noreturn)) static void fail(const char *what)
{
    fprintf(stderr, "words_peer: %s\n", what);
    exit(1);
}

/* False at the end. */
static bool read_text(struct buf *text)
{
    unsigned char n[4];
    size_t bytes;

    if (fread(n, 1, sizeof(n), stdin) != sizeof(n))
        return false;
    bytes = n[0] | n[1] << 8 | n[2] << 16 | (size_t)n[3] << 24;
    buf_clear(text);
    if (bytes > 0) {
        char *to = buf_reserve(text, bytes);

        if (!to || fread(to, 1, bytes, stdin) != bytes)
            fail("this is no text");
        buf_commit(text, bytes);
    }
    return true;
}

static void say_words(struct str text)
{
    struct words w;
    const char *between = "";

    words_begin(&w, text);
    for (; words_next(&w); between = " ")
        printf("%s%s%.*s", between, w.is_long ? "~" : "", STR_ARG(w.word));
    putchar('\n');
}

static void say_ids(const struct vocab *v, uint32_t unknown, struct str text)
{
    static uint32_t ids[MAX_IDS];
    size_t n = wordpieces(v, text, unknown, ids, MAX_IDS);

    for (size_t i = 0; i < n; i++)
        printf(i ? " %u" : "%u", ids[i]);
    putchar('\n');
}

/* The bytes of the vocabulary, made of the lines of a file. */
static struct buf make_vocab(const char *path)
{
    static char text[1 << 24];
    static struct str pieces[VOCAB_MAX_PIECES];
    FILE *f = fopen(path, "re");
    struct str rest = {text, f ? fread(text, 1, sizeof(text), f) : 0};
    struct buf out;
    struct why why = {"it cannot be read"};
    size_t n = 0;

    if (f)
        fclose(f);
    while (rest.n > 0 && n < VOCAB_MAX_PIECES)
        pieces[n++] = str_cut(&rest, '\n');
    buf_init(&out, MAX_BYTES);
    if (n == 0 || vocab_make(pieces, n, &out, &why))
        fail(why.text);
    return out;
}

int main(int argc, char **argv)
{
    struct buf text, bytes;
    struct vocab v;
    uint32_t unknown;

    buf_init(&text, MAX_BYTES);
    if (argc == 2) {
        while (read_text(&text))
            say_words(buf_str(&text));
    } else if (argc == 3) {
        bytes = make_vocab(argv[2]);
        if (vocab_open(&v, buf_str(&bytes), NULL))
            fail("what was made cannot be opened");
        unknown = vocab_find(&v, STR(""), STR("[UNK]"));
        while (read_text(&text))
            say_ids(&v, unknown, buf_str(&text));
        buf_fini(&bytes);
    } else {
        fail("words | ids VOCABULARY");
    }
    buf_fini(&text);
    return 0;
}
