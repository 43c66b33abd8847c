/* The table that is inside the binary. */
#include "test/t.h"

#include "embed/internal.h"
#include "test/lib/table_stage.h"

static struct str read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct buf text;
    struct str s;
    size_t n;

    CHECK(f);
    buf_init(&text, TABLE_BYTES_MAX + (1 << 17));
    do {
        char *p = buf_reserve(&text, 1 << 16);

        CHECK(p);
        n = fread(p, 1, 1 << 16, f);
        buf_commit(&text, n);
    } while (n > 0);
    fclose(f);
    s = toy_aligned(buf_str(&text));
    buf_fini(&text);
    return s;
}

TEST(the_table_in_the_binary_is_whole)
{
    struct builtin b;
    struct why why = {""};

    if (builtin_open(&b, &why))
        T_FAIL("%s", why.text);
    CHECK_INT(strlen(builtin_hash(&b)), EMBED_HASH_CHARS);
    CHECK((uintptr_t)b.table.rows % 64 == 0);
}

/* Otherwise the build missed a change of the file. */
TEST(it_is_the_file_of_the_source)
{
    struct str s = read_file(SOURCE_ROOT "/data/table.sbt");
    struct builtin inside, file;

    CHECK(builtin_open(&inside, NULL) == OK);
    CHECK(builtin_open_bytes(&file, s, NULL) == OK);
    CHECK(strcmp(builtin_hash(&inside), builtin_hash(&file)) == 0);
    free((char *)s.p);
}

/* The model card describes the files in the repository. */
TEST(the_card_has_their_hashes)
{
    struct str card = read_file(SOURCE_ROOT "/data/models.md");
    struct embed_stamp stamp;
    enum embed_kind kinds[] = {EMBED_TABLE, EMBED_TRANSFORMER};

    for (size_t i = 0; i < 2; i++) {
        CHECK(embed_check(&(struct embed_opts){.kind = kinds[i]}, &stamp,
                          NULL) == OK);
        CHECK(memmem(card.p, card.n, stamp.hash, EMBED_HASH_CHARS));
    }
    free((char *)card.p);
}

TEST(it_knows_texts_that_are_alike)
{
    struct builtin b;
    float one[BUILTIN_DIMS], same[BUILTIN_DIMS], other[BUILTIN_DIMS];

    CHECK(builtin_open(&b, NULL) == OK);
    builtin_embed(&b, STR("What will the weather be in Paris?"), one);
    builtin_embed(&b, STR("the weather in Paris tomorrow"), same);
    builtin_embed(&b, STR("translate this letter"), other);
    CHECK(vec_cosine(one, BUILTIN_DIMS, same, BUILTIN_DIMS) >
          vec_cosine(one, BUILTIN_DIMS, other, BUILTIN_DIMS));
}
