/* The table of metrics against docs/protocol.md, both ways. */
#include "api/internal.h"
#include "test/t.h"

/* The table of families in docs/protocol.md. */
static struct str documented_families(void)
{
    static char text[512 * 1024];
    FILE *f = fopen(SOURCE_ROOT "/docs/protocol.md", "r");
    const char *from, *to;
    size_t n;

    CHECK(f);
    n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    CHECK(n < sizeof(text) - 1);
    text[n] = '\0';
    from = strstr(text, "| family | meaning |\n");
    CHECK(from);
    to = strstr(from, "\n\n");
    CHECK(to);
    return (struct str){from, (size_t)(to - from)};
}

static bool is_in_table(struct str name)
{
    for (size_t i = 0; i < api_metrics_n; i++)
        if (str_eq(str_of(api_metrics[i].name), name))
            return true;
    return false;
}

TEST(every_metric_is_documented_and_there)
{
    struct str families = documented_families();
    const char *at = families.p, *end = families.p + families.n;
    size_t n = 0, n_families = 0;

    while ((at = memmem(at, (size_t)(end - at), "`signalbox_", 11))) {
        struct str name = {at + 1, strcspn(at + 1, "`{")};

        if (!is_in_table(name))
            T_FAIL("%.*s is documented and not there", STR_ARG(name));
        at = name.p + name.n;
        n++;
    }
    for (size_t i = 0; i < api_metrics_n; i++) {
        const char *name = api_metrics[i].name;
        char plain[128], labelled[128];

        if (!api_metrics[i].help)
            continue;
        n_families++;
        snprintf(plain, sizeof(plain), "`%s`", name);
        snprintf(labelled, sizeof(labelled), "`%s{", name);
        if (!memmem(families.p, families.n, plain, strlen(plain)) &&
            !memmem(families.p, families.n, labelled, strlen(labelled)))
            T_FAIL("%s is not in docs/protocol.md", name);
    }
    CHECK_INT(n, n_families);
}
