/* Any bytes as what a provider of vectors answers. What is taken is what it
 * should be: as many vectors as were asked for, each one long or all zero, of
 * the length that was asked for. The first two bytes say what was asked. */
#include <assert.h>
#include <math.h>

#include "base/buf.h"
#include "embed/embed.h"
#include "embed/reply.h"
#include "net/client/fetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static double length(const float *v, size_t dims)
{
    double sum = 0;

    for (size_t i = 0; i < dims; i++)
        sum += (double)v[i] * (double)v[i];
    return sqrt(sum);
}

static void check(const struct reply *r, size_t n, uint32_t dims)
{
    size_t n_good = 0;

    assert(r->dims > 0 && r->dims <= EMBED_DIMS_MAX);
    assert(!dims || r->dims == dims);
    for (size_t i = 0; i < n; i++) {
        double l = length(r->vectors + i * r->dims, r->dims);

        assert(r->is_good[i] ? fabs(l - 1) < 1e-3 : l == 0);
        n_good += r->is_good[i];
    }
    assert(n_good > 0 && n_good == r->n_good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct str body = {(const char *)data + 2, n < 2 ? 0 : n - 2};
    struct why why = {""};
    char message[64];
    struct reply r;
    size_t n_texts;
    uint32_t dims;
    enum err e;

    if (n < 2)
        return 0;
    n_texts = 1 + data[0] % 4;
    dims = data[1] % 4;
    e = reply_read(body, n_texts, dims, &r, &why);
    assert(!e || e == ERR_BAD_REQUEST || e == ERR_NOMEM);
    assert(!e || why.text[0]);
    if (!e) {
        check(&r, n_texts, dims);
        reply_fini(&r);
    }
    fetch_complaint(body, &STR("sk-1"), 1, message, sizeof(message));
    assert(strlen(message) < sizeof(message));
    assert(!strstr(message, "sk-1"));
    return 0;
}
