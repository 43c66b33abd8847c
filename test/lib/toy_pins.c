/* Pins of a toy model, for the one binary of the tests that takes another than
 * the real one: from the environment, "BYTES HASH" each. */
#include "lab/weights.h"

#include <stdio.h>
#include <stdlib.h>

static void read_pin(const char *name, uint64_t *bytes, char hash[129])
{
    const char *text = getenv(name);
    unsigned long long n;

    if (!text || sscanf(text, "%llu %128s", &n, hash) != 2) {
        fprintf(stderr, "%s should say: BYTES HASH\n", name);
        exit(99);
    }
    *bytes = n;
}

static int64_t read_ms(const char *name, int64_t preset)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 10) : preset;
}

const struct weights_pins *weights_pins(void)
{
    static char hashes[3][129];
    static struct weights_pins p = {
        .package = "@toy/model",
        .version = "1.2.3",
        .path = "/@toy/model/-/model-1.2.3.tgz",
        .licence = "Apache-2.0",
        .files = {{.path = "package/model/model.fp16.safetensors"},
                  {.path = "package/model/tokenizer.json"}},
        .max_tarball_bytes = 1 << 20,
        .max_unpacked_bytes = 4 << 20,
        .timeout_ms = 60 * 1000,
    };

    read_pin("TOY_TARBALL", &p.tarball_bytes, hashes[2]);
    p.tarball_sha512 = hashes[2];
    read_pin("TOY_MODEL", &p.files[WEIGHTS_MODEL].bytes, hashes[0]);
    p.files[WEIGHTS_MODEL].sha256 = hashes[0];
    read_pin("TOY_TOKENIZER", &p.files[WEIGHTS_TOKENIZER].bytes, hashes[1]);
    p.files[WEIGHTS_TOKENIZER].sha256 = hashes[1];
    p.made_hash = getenv("TOY_MADE") ? getenv("TOY_MADE") : "";
    p.silence_ms = read_ms("TOY_SILENCE_MS", 30 * 1000);
    return &p;
}
