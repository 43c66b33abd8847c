/* Output of the rows: the description of one, the names of those that differ,
 * and a whole configuration as JSON. */
#include "server/config/internal.h"

void setting_variable(struct str path, char out[SETTING_VARIABLE_BYTES])
{
    size_t n = sizeof("SIGNALBOX_") - 1;

    memcpy(out, "SIGNALBOX_", n);
    for (size_t i = 0; i < path.n && n + 3 <= SETTING_VARIABLE_BYTES; i++) {
        char c = path.p[i];
        bool is_upper = c >= 'A' && c <= 'Z', is_dot = c == '.';

        if (is_upper || is_dot)
            out[n++] = '_';
        if (is_dot)
            c = '_';
        out[n++] = c >= 'a' && c <= 'z' ? (char)(c & ~0x20) : c;
    }
    out[n] = '\0';
}

bool config_setting(size_t i, struct config_setting *out)
{
    const struct setting *s;
    struct buf allowed;

    if (i >= config_settings.n)
        return false;
    s = &config_settings.rows[i];
    *out = (struct config_setting){.path = s->path,
                                   .preset = s->preset,
                                   .what = s->what,
                                   .flag = s->flag,
                                   .needs_restart = s->needs_restart};
    buf_init(&allowed, sizeof(out->allowed) - 1);
    s->type->allowed(s, &allowed);
    if (allowed.n)
        memcpy(out->allowed, allowed.p, allowed.n);
    buf_fini(&allowed);
    setting_variable(str_of(s->path), out->variable);
    return true;
}

void config_restart_needed(const struct config *now, const struct config *then,
                           struct buf *names)
{
    for (size_t i = 0; i < config_settings.n; i++) {
        const struct setting *s = &config_settings.rows[i];

        if (!s->needs_restart ||
            s->type->is_same(s, setting_look(s, now), setting_look(s, then)))
            continue;
        if (names->n)
            buf_add_str(names, STR(", "));
        buf_add_str(names, str_of(s->path));
    }
}

struct str setting_section(const char *path)
{
    const char *dot = strrchr(path, '.');

    return (struct str){path, dot ? (size_t)(dot - path) : 0};
}

void setting_move_to(struct json_out *o, struct str *now, struct str to)
{
    while (now->n &&
           !(str_starts(to, *now) && (to.n == now->n || to.p[now->n] == '.'))) {
        json_close(o, '}');
        while (now->n && now->p[now->n - 1] != '.')
            now->n--;
        now->n -= now->n > 0;
    }
    while (now->n < to.n) {
        size_t from = now->n ? now->n + 1 : 0;
        size_t end = str_find(to, '.', from);

        json_key(o, str_sub(to, from, end));
        json_open(o, '{');
        *now = str_sub(to, 0, end);
    }
}

void config_write_json(const struct config *c, struct buf *out)
{
    struct json_out o = json_out(out);
    struct str section = {0};

    json_open(&o, '{');
    for (size_t i = 0; i < config_settings.n; i++) {
        const struct setting *s = &config_settings.rows[i];
        struct str name = str_of(s->path);

        setting_move_to(&o, &section, setting_section(s->path));
        json_key(&o, str_sub(name, section.n + (section.n > 0), name.n));
        s->type->write(s, &o, setting_look(s, c));
    }
    setting_move_to(&o, &section, (struct str){0});
    json_close(&o, '}');
}
