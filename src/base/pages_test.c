#include "base/pages.h"

#include "test/t.h"

static bool is_zero(const char *p, size_t n)
{
    return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

TEST(it_is_zero_aligned_and_all_there)
{
    static const size_t sizes[] = {
        0, 1, 63, 4096, 100000, 4 * 1024 * 1024 - 1, 4 * 1024 * 1024, 9999999};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        char *p = pages_new(sizes[i]);

        CHECK(p && (uintptr_t)p % 64 == 0);
        CHECK(is_zero(p, sizes[i]));
        memset(p, 0x5a, sizes[i]);
        pages_free(p, sizes[i]);
    }
    pages_free(NULL, 100);
    pages_free(NULL, 1 << 30);
}

TEST(more_than_there_can_be_is_refused)
{
    CHECK(!pages_new(SIZE_MAX));
    CHECK(!pages_new(SIZE_MAX - 4095));
    CHECK(!pages_new(SIZE_MAX / 2));
}
