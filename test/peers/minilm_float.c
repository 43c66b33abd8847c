/* MiniLM as it is published, in float, without haste and without a line of
 * ours: what src/embed/minilm_*.c is held against. Each line of the input is
 * one text as the numbers of its tokens, [CLS] and [SEP] included; each gives
 * 384 floats on the output, one vector, one long.
 *
 *     minilm_float model.fp16.safetensors <tokens >vectors */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIMS = 384, INNER = 1536, HEADS = 12, HEAD = 32, LAYERS = 6 };
enum { TOKENS = 512, LINE_BYTES = 1 << 16 };

static char *file;
static size_t file_bytes;

static void give_up(const char *what)
{
    fprintf(stderr, "minilm_float: %s\n", what);
    exit(1);
}

static void read_file(const char *path)
{
    FILE *f = fopen(path, "rb");

    if (!f || fseek(f, 0, SEEK_END) != 0)
        give_up("no such file");
    file_bytes = (size_t)ftell(f);
    rewind(f);
    file = malloc(file_bytes + 1);
    if (!file || fread(file, 1, file_bytes, f) != file_bytes)
        give_up("cannot read the file");
    fclose(f);
}

static float half(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    float v = exponent ? ldexpf((float)(fraction + 1024), exponent - 25)
                       : ldexpf((float)fraction, -24);

    return h & 0x8000 ? -v : v;
}

/* The numbers of a tensor; a matrix is turned, so that inputs are rows. */
static float *tensor(const char *name, size_t rows, size_t cols)
{
    char quoted[128], *at;
    uint64_t header;
    unsigned long from;
    float *out = malloc(rows * cols * sizeof(*out));

    memcpy(&header, file, sizeof(header));
    file[8 + header - 1] = 0; /* its last brace */
    snprintf(quoted, sizeof(quoted), "\"%s\":", name);
    at = strstr(file + 8, quoted);
    at = at ? strstr(at, "\"data_offsets\":[") : NULL;
    if (!at || !out)
        give_up(name);
    from = strtoul(at + strlen("\"data_offsets\":["), NULL, 10);
    at = file + 8 + header + from;
    if (at + rows * cols * 2 > file + file_bytes)
        give_up(name);
    for (size_t i = 0; i < rows * cols; i++) {
        uint16_t h;

        memcpy(&h, at + 2 * i, sizeof(h));
        out[i % cols * rows + i / cols] = half(h);
    }
    return out;
}

struct linear {
    float *w, *b;
    size_t n_in, n_out;
};

struct norm {
    float *w, *b;
};

static struct {
    float *words, *positions, *types;
    struct norm norm;
    struct layer {
        struct linear query, key, value, out, up, down;
        struct norm out_norm, down_norm;
    } layers[LAYERS];
} m;

static struct linear linear(int layer, const char *name, size_t n_out,
                            size_t n_in)
{
    char full[96];
    struct linear l = {.n_in = n_in, .n_out = n_out};

    snprintf(full, sizeof(full), "encoder.layer.%d.%s.weight", layer, name);
    l.w = tensor(full, n_out, n_in);
    snprintf(full, sizeof(full), "encoder.layer.%d.%s.bias", layer, name);
    l.b = tensor(full, n_out, 1);
    return l;
}

static struct norm norm(const char *prefix)
{
    char full[96];
    struct norm n;

    snprintf(full, sizeof(full), "%s.LayerNorm.weight", prefix);
    n.w = tensor(full, DIMS, 1);
    snprintf(full, sizeof(full), "%s.LayerNorm.bias", prefix);
    n.b = tensor(full, DIMS, 1);
    return n;
}

static void read_model(void)
{
    char prefix[64];

    /* Turned, these have a column for each word. */
    m.words = tensor("embeddings.word_embeddings.weight", 30522, DIMS);
    m.positions = tensor("embeddings.position_embeddings.weight", 512, DIMS);
    m.types = tensor("embeddings.token_type_embeddings.weight", 2, DIMS);
    m.norm = norm("embeddings");
    for (int i = 0; i < LAYERS; i++) {
        struct layer *l = &m.layers[i];

        l->query = linear(i, "attention.self.query", DIMS, DIMS);
        l->key = linear(i, "attention.self.key", DIMS, DIMS);
        l->value = linear(i, "attention.self.value", DIMS, DIMS);
        l->out = linear(i, "attention.output.dense", DIMS, DIMS);
        l->up = linear(i, "intermediate.dense", INNER, DIMS);
        l->down = linear(i, "output.dense", DIMS, INNER);
        snprintf(prefix, sizeof(prefix), "encoder.layer.%d.attention.output",
                 i);
        l->out_norm = norm(prefix);
        snprintf(prefix, sizeof(prefix), "encoder.layer.%d.output", i);
        l->down_norm = norm(prefix);
    }
}

static void apply(const struct linear *l, const float *x, float *y)
{
    memcpy(y, l->b, l->n_out * sizeof(*y));
    for (size_t k = 0; k < l->n_in; k++)
        for (size_t c = 0; c < l->n_out; c++)
            y[c] += x[k] * l->w[k * l->n_out + c];
}

static void normalise(const struct norm *n, float *x)
{
    double mean = 0, squares = 0;

    for (int i = 0; i < DIMS; i++)
        mean += x[i] / DIMS;
    for (int i = 0; i < DIMS; i++)
        squares += (x[i] - mean) * (x[i] - mean) / DIMS;
    for (int i = 0; i < DIMS; i++)
        x[i] =
            (float)((x[i] - mean) / sqrt(squares + 1e-12)) * n->w[i] + n->b[i];
}

static float x[TOKENS][DIMS], query[TOKENS][DIMS], key[TOKENS][DIMS],
    value[TOKENS][DIMS], mixed[TOKENS][DIMS];

static void attend(int n, int i, int head)
{
    double score[TOKENS], high = -1e30, sum = 0;
    int from = head * HEAD;

    for (int j = 0; j < n; j++) {
        score[j] = 0;
        for (int d = from; d < from + HEAD; d++)
            score[j] += query[i][d] * key[j][d] / sqrt(HEAD);
        high = fmax(high, score[j]);
    }
    for (int j = 0; j < n; j++)
        sum += score[j] = exp(score[j] - high);
    for (int d = from; d < from + HEAD; d++) {
        double v = 0;

        for (int j = 0; j < n; j++)
            v += score[j] / sum * value[j][d];
        mixed[i][d] = (float)v;
    }
}

static void run_layer(const struct layer *l, int n)
{
    float wide[INNER], part[DIMS];

    for (int i = 0; i < n; i++) {
        apply(&l->query, x[i], query[i]);
        apply(&l->key, x[i], key[i]);
        apply(&l->value, x[i], value[i]);
    }
    for (int i = 0; i < n; i++)
        for (int head = 0; head < HEADS; head++)
            attend(n, i, head);
    for (int i = 0; i < n; i++) {
        apply(&l->out, mixed[i], part);
        for (int d = 0; d < DIMS; d++)
            x[i][d] += part[d];
        normalise(&l->out_norm, x[i]);
        apply(&l->up, x[i], wide);
        for (int d = 0; d < INNER; d++)
            wide[d] *= (float)(0.5 * (1 + erf(wide[d] * sqrt(0.5))));
        apply(&l->down, wide, part);
        for (int d = 0; d < DIMS; d++)
            x[i][d] += part[d];
        normalise(&l->down_norm, x[i]);
    }
}

static void run(const unsigned long *ids, int n)
{
    double mean[DIMS] = {0}, squares = 0;
    float out[DIMS];

    for (int i = 0; i < n; i++) {
        for (int d = 0; d < DIMS; d++)
            x[i][d] = m.words[(size_t)d * 30522 + ids[i]] +
                      m.positions[d * 512 + i] + m.types[d * 2];
        normalise(&m.norm, x[i]);
    }
    for (int i = 0; i < LAYERS; i++)
        run_layer(&m.layers[i], n);
    for (int d = 0; d < DIMS; d++) {
        for (int i = 0; i < n; i++)
            mean[d] += x[i][d];
        squares += mean[d] * mean[d];
    }
    for (int d = 0; d < DIMS; d++)
        out[d] = (float)(mean[d] / sqrt(squares));
    if (fwrite(out, sizeof(out), 1, stdout) != 1)
        give_up("cannot write");
}

int main(int argc, char **argv)
{
    static char line[LINE_BYTES];
    static unsigned long ids[TOKENS];

    if (argc != 2)
        give_up("which file?");
    read_file(argv[1]);
    read_model();
    while (fgets(line, sizeof(line), stdin)) {
        char *at = line, *end;
        int n = 0;

        for (; n < TOKENS; n++, at = end) {
            ids[n] = strtoul(at, &end, 10);
            if (end == at)
                break;
            if (ids[n] >= 30522)
                give_up("no such token");
        }
        if (n > 0)
            run(ids, n);
    }
    return 0;
}
