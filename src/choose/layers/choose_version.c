/* A short name for settings: FNV-1a over everything that matters. It is no
 * secret, and a collision gains nothing, so 64 bits suffice. Settings that
 * cannot make a difference (of a classifier that is off) are left out. */
#include "choose/layers/choose.h"

#include <stdio.h>

static void version_add(uint64_t *h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        *h = (*h ^ p[i]) * UINT64_C(0x100000001b3);
}

static void version_add_int(uint64_t *h, uint64_t v)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    version_add(h, bytes, sizeof(bytes));
}

/* Positive and negative zero decide alike. */
static void version_add_real(uint64_t *h, double v)
{
    uint64_t bits;

    v = v == 0 ? 0 : v;
    memcpy(&bits, &v, sizeof(bits));
    version_add_int(h, bits);
}

static void version_add_str(uint64_t *h, struct str s, bool has_case)
{
    version_add_int(h, s.n);
    for (size_t i = 0; i < s.n; i++) {
        char c = has_case ? s.p[i] : str_lower(s.p[i]);

        version_add(h, &c, 1);
    }
}

static void version_add_binding(uint64_t *h, const struct binding *b)
{
    version_add_str(h, b->agent, false);
    version_add_str(h, b->channel, false);
    version_add_str(h, b->account_id, false);
    version_add_str(h, b->peer.kind, false);
    version_add_str(h, b->peer.id, true);
    version_add_str(h, b->guild_id, true);
    version_add_str(h, b->team_id, true);
    version_add_int(h, b->roles.n);
    for (size_t i = 0; i < b->roles.n; i++)
        version_add_str(h, b->roles.list[i], true);
}

void choose_version(const struct choose_settings *s, char out[17])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    bool has_bindings = !s->is_off[LAYER_BINDING];
    bool has_intent = s->intent.is_on && !s->is_off[LAYER_INTENT];

    for (int l = LAYER_EXPLICIT; l < N_LAYERS; l++)
        version_add_int(&h, s->is_off[l]);
    version_add_real(&h, s->weights.semantic);
    version_add_real(&h, s->weights.performance);
    version_add_real(&h, s->weights.keyword);
    version_add_real(&h, s->weights.recency);
    version_add_int(&h, s->is_auto);
    version_add_int(&h, s->is_centred);
    version_add_real(&h, s->is_auto ? 0 : s->threshold);
    version_add_int(&h, s->unsure);
    version_add_int(&h, s->is_seed);
    version_add_int(&h, s->trusts_all);
    version_add_real(&h, s->text_blend);
    version_add_int(&h, (uint64_t)s->recency_ms);
    version_add_real(&h, s->explore);
    version_add_real(&h, s->close_margin);
    version_add_real(&h, s->second_margin);
    version_add_str(&h, s->is_off[LAYER_DEFAULT] ? STR("") : s->default_agent,
                    false);
    version_add_int(&h, has_intent);
    if (has_intent) {
        version_add_real(&h, s->intent.threshold);
        version_add_int(&h, s->intent.when);
        version_add_int(&h, s->intent.overrides);
    }
    version_add_int(&h, has_bindings ? s->bindings.n : 0);
    for (size_t i = 0; has_bindings && i < s->bindings.n; i++)
        version_add_binding(&h, &s->bindings.list[i]);
    snprintf(out, 17, "%016llx", (unsigned long long)h);
}
