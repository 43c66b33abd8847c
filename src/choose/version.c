/* What choosing is told, as a short name: FNV-1a over everything that counts.
 * It is no secret and nobody gains by two of them being alike, so 64 bits do.
 * What cannot make a difference (the classifier's settings where none is asked)
 * is left out. */
#include "choose/choose.h"

#include <stdio.h>

static void add(uint64_t *h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;

    for (size_t i = 0; i < n; i++)
        *h = (*h ^ p[i]) * UINT64_C(0x100000001b3);
}

static void add_int(uint64_t *h, uint64_t v)
{
    unsigned char bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    add(h, bytes, sizeof(bytes));
}

/* Zero has two forms, which decide alike. */
static void add_real(uint64_t *h, double v)
{
    uint64_t bits;

    v = v == 0 ? 0 : v;
    memcpy(&bits, &v, sizeof(bits));
    add_int(h, bits);
}

static void add_str(uint64_t *h, struct str s, bool has_case)
{
    add_int(h, s.n);
    for (size_t i = 0; i < s.n; i++) {
        char c = has_case ? s.p[i] : str_lower(s.p[i]);

        add(h, &c, 1);
    }
}

static void add_binding(uint64_t *h, const struct binding *b)
{
    add_str(h, b->agent, false);
    add_str(h, b->channel, false);
    add_str(h, b->account_id, false);
    add_str(h, b->peer.kind, false);
    add_str(h, b->peer.id, true);
    add_str(h, b->guild_id, true);
    add_str(h, b->team_id, true);
    add_int(h, b->roles.n);
    for (size_t i = 0; i < b->roles.n; i++)
        add_str(h, b->roles.list[i], true);
}

static void add_intent(uint64_t *h, const struct choose_settings *s)
{
    bool is_on = s->intent.is_on && !s->is_off[LAYER_INTENT];

    add_int(h, is_on);
    if (!is_on)
        return;
    add_real(h, s->intent.threshold);
    add_int(h, s->intent.when);
    add_int(h, s->intent.overrides);
}

void choose_version(const struct choose_settings *s, char out[17])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    bool has_bindings = !s->is_off[LAYER_BINDING];

    for (int l = LAYER_EXPLICIT; l < N_LAYERS; l++)
        add_int(&h, s->is_off[l]);
    add_real(&h, s->weights.semantic);
    add_real(&h, s->weights.performance);
    add_real(&h, s->weights.keyword);
    add_real(&h, s->weights.recency);
    add_int(&h, s->is_auto);
    add_int(&h, s->is_centred);
    add_real(&h, s->is_auto ? 0 : s->threshold);
    add_int(&h, s->unsure);
    add_int(&h, s->is_seed);
    add_int(&h, s->trusts_all);
    add_real(&h, s->text_blend);
    add_int(&h, (uint64_t)s->recency_ms);
    add_real(&h, s->explore);
    add_real(&h, s->close_margin);
    add_real(&h, s->second_margin);
    add_str(&h, s->is_off[LAYER_DEFAULT] ? STR("") : s->default_agent, false);
    add_intent(&h, s);
    add_int(&h, has_bindings ? s->bindings.n : 0);
    for (size_t i = 0; has_bindings && i < s->bindings.n; i++)
        add_binding(&h, &s->bindings.list[i]);
    snprintf(out, 17, "%016llx", (unsigned long long)h);
}
