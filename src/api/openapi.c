/* Generates GET /openapi.json and the tables of docs/protocol.md from the table
 * of calls. The document holds no data, so it needs no token. It is
 * made at the first request and kept. */
#include "api/calls.h"
#include "api/internal.h"
#include "speak/shapes.h"

enum { OPENAPI_BYTES = 1024 * 1024 };

/* Statuses and types of an answer: "200,202 Task". */
struct answer {
    struct str statuses, type;
    bool is_json;
};

static struct answer answer_shape(const struct call_row *row)
{
    struct str rest = str_of(row->answer);
    struct answer a = {.statuses = STR("200"), .type = rest};

    if (rest.n && rest.p[0] >= '0' && rest.p[0] <= '9') {
        a.statuses = str_cut(&rest, ' ');
        a.type = rest;
    }
    a.is_json = a.type.n &&
                (a.type.p[0] == '{' || str_find(a.type, '/', 0) == a.type.n);
    return a;
}

/* The operations. */

static void put_parameter(struct json_out *o, const char *in, struct str name,
                          const char *about, bool is_required)
{
    json_open(o, '{');
    json_member_text(o, "name", name);
    json_member_text(o, "in", str_of(in));
    if (about)
        json_member_text(o, "description", str_of(about));
    if (is_required)
        json_member_bool(o, "required", true);
    json_key(o, STR("schema"));
}

static void put_header(struct json_out *o, const char *name, const char *about)
{
    put_parameter(o, "header", str_of(name), about, false);
    speak_put_type(o, "string");
    json_close(o, '}');
}

/* The ":x" of the path. */
static void put_path_parameters(struct json_out *o, struct str path)
{
    static const struct field part = {"", FIELD_NAME, 1, CALL_PARAM_MAX,
                                      .at = 0};

    while (path.n) {
        struct str one = str_cut(&path, '/');

        if (!one.n || one.p[0] != ':')
            continue;
        put_parameter(o, "path", str_sub(one, 1, one.n), NULL, true);
        speak_put_field(o, &part);
        json_close(o, '}');
    }
}

static void put_parameters(struct json_out *o, const struct call_row *row)
{
    json_key(o, STR("parameters"));
    json_open(o, '[');
    put_path_parameters(o, row->path);
    for (const struct field *f = row->args; f && f->name; f++) {
        put_parameter(o, "query", str_of(f->name), f->about, false);
        if (strcmp(f->name, "cursor") == 0) /* as next_cursor, even a number */
            speak_put_type(o, "string");
        else
            speak_put_field(o, f);
        json_close(o, '}');
    }
    if (row->extra & KEYED)
        put_header(o, "Idempotency-Key",
                   "the same key within 24 hours starts nothing");
    if (row->extra & MATCHED) {
        put_header(o, "If-Match", "only if its ETag is one of these");
        put_header(o, "If-None-Match", "only if its ETag is none of these");
    }
    if (row->extra & (EVENTS | ONLY_EVENTS) && str_eq(row->method, STR("GET")))
        put_header(o, "Last-Event-ID", "the last event that was seen");
    json_close(o, ']');
}

static void put_body(struct json_out *o, const struct call_row *row)
{
    if (!row->body && !row->raw_body)
        return;
    json_key(o, STR("requestBody"));
    json_open(o, '{');
    json_member_bool(o, "required", !(row->extra & BARE));
    json_key(o, STR("content"));
    json_open(o, '{');
    json_key(o, SPEAK_JSON);
    json_open(o, '{');
    json_key(o, STR("schema"));
    if (row->or_body) {
        json_open(o, '{');
        json_key(o, STR("anyOf"));
        json_open(o, '[');
        speak_put_fields(o, row->body);
        speak_put_fields(o, row->or_body);
        json_close(o, ']');
        json_close(o, '}');
    } else if (row->body) {
        speak_put_fields(o, row->body);
    } else {
        speak_put_type(o, row->raw_body);
    }
    json_close(o, '}');
    json_close(o, '}');
    json_close(o, '}');
}

static void put_text_content(struct json_out *o, struct str type)
{
    json_key(o, type);
    json_open(o, '{');
    json_key(o, STR("schema"));
    speak_put_type(o, "string");
    json_close(o, '}');
}

static void put_content(struct json_out *o, const struct call_row *row,
                        const struct answer *a)
{
    json_key(o, STR("content"));
    json_open(o, '{');
    if (a->is_json) {
        json_key(o, SPEAK_JSON);
        json_open(o, '{');
        json_key(o, STR("schema"));
        speak_put_type(o, a->type.p);
        json_close(o, '}');
    } else {
        put_text_content(o, a->type);
    }
    if (row->extra & EVENTS)
        put_text_content(o, SPEAK_EVENTS);
    if (row->extra & CSV)
        put_text_content(o, STR("text/csv"));
    if (row->extra & PLAIN)
        put_text_content(o, STR("text/plain"));
    json_close(o, '}');
}

static void put_responses(struct json_out *o, const struct call_row *row)
{
    struct answer a = answer_shape(row);
    struct str statuses = a.statuses;

    json_key(o, STR("responses"));
    json_open(o, '{');
    while (statuses.n) {
        struct str status = str_cut(&statuses, ',');

        json_key(o, status);
        json_open(o, '{');
        json_member_text(o, "description",
                         str_eq(status, STR("201"))   ? STR("it was made")
                         : str_eq(status, STR("202")) ? STR("it has begun")
                         : str_eq(status, STR("204")) ? STR("it is done")
                                                      : STR("the answer"));
        if (a.type.n)
            put_content(o, row, &a);
        json_close(o, '}');
    }
    if (row->extra & MATCHED && str_eq(row->method, STR("GET")))
        json_member_raw(o, "304", STR("{\"description\":\"as it was\"}"));
    json_key(o, STR("default"));
    json_open(o, '{');
    json_member_text(o, "$ref", STR("#/components/responses/Error"));
    json_close(o, '}');
    json_close(o, '}');
}

/* The first part of the path after /api/. */
static struct str tag_of(const struct call_row *row)
{
    struct str path = str_sub(row->path, sizeof("/api"), row->path.n);

    return str_starts(row->path, STR("/api/")) ? str_cut(&path, '/')
                                               : STR("server");
}

static void put_operation(struct json_out *o, const struct call_row *row)
{
    struct str scope = scope_name((enum scope)(row->who & SCOPE_ALL));
    char about[256];

    json_open(o, '{');
    json_member_text(o, "operationId", str_of(row->name));
    json_key(o, STR("tags"));
    json_open(o, '[');
    json_put_str(o, tag_of(row));
    json_close(o, ']');
    json_member_text(o, "summary", str_of(row->about));
    if (row->who & PUBLIC)
        json_member_raw(o, "security",
                        row->who & FIGURES ? STR("[{},{\"bearer\":[]}]")
                                           : STR("[]"));
    else if (row->who != ANY_TOKEN) {
        snprintf(about, sizeof(about), "Needs the scope `%.*s`.",
                 STR_ARG(scope));
        json_member_text(o, "description", str_of(about));
    }
    if (row->hub)
        json_member_text(o, "x-hub-method", str_of(row->hub));
    put_parameters(o, row);
    put_body(o, row);
    put_responses(o, row);
    json_close(o, '}');
}

/* An earlier row has the same path. */
static bool path_is_repeated(size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (str_eq(call_row(i)->path, call_row(row)->path))
            return true;
    return false;
}

static void put_paths(struct json_out *o)
{
    const struct call_row *row, *same;

    json_key(o, STR("paths"));
    json_open(o, '{');
    for (size_t i = 0; (row = call_row(i)); i++) {
        struct buf path;

        if (path_is_repeated(i) || call_row_has_rest(row))
            continue;
        buf_init(&path, 256);
        call_row_add_path(&path, row, true);
        json_key(o, buf_str(&path));
        buf_fini(&path);
        json_open(o, '{');
        for (size_t k = i; (same = call_row(k)); k++)
            if (str_eq(same->path, row->path)) {
                char method[8] = "";

                for (size_t n = 0; n < same->method.n && n < 7; n++)
                    method[n] = str_lower(same->method.p[n]);
                json_key(o, str_of(method));
                put_operation(o, same);
            }
        json_close(o, '}');
    }
    json_close(o, '}');
}

static void openapi_write(struct buf *out)
{
    struct json_out o = json_out(out);

    json_open(&o, '{');
    json_member_text(&o, "openapi", STR("3.1.0"));
    json_member_raw(
        &o, "info",
        STR("{\"title\":\"Signalbox\",\"version\":\"" SIGNALBOX_VERSION
            "\",\"description\":\"Send messages to agents and "
            "see what became of them. The WebSocket of agents (/hub) and the "
            "events of streams are described in the documentation of "
            "Signalbox.\",\"license\":{"
            "\"name\":\"Apache-2.0\",\"identifier\":"
            "\"Apache-2.0\"}}"));
    json_member_raw(&o, "servers", STR("[{\"url\":\"/\"}]"));
    json_member_raw(&o, "security", STR("[{\"bearer\":[]}]"));
    put_paths(&o);
    json_key(&o, STR("components"));
    json_open(&o, '{');
    json_member_raw(&o, "securitySchemes",
                    STR("{\"bearer\":{\"type\":\"http\",\"scheme\":"
                        "\"bearer\"}}"));
    json_member_raw(
        &o, "responses",
        STR("{\"Error\":{\"description\":\"what was wrong\",\"content\":{"
            "\"application/json\":{\"schema\":{\"$ref\":"
            "\"#/components/schemas/Error\"}}}}}"));
    json_key(&o, STR("schemas"));
    json_open(&o, '{');
    speak_put_shapes(&o);
    json_close(&o, '}');
    json_close(&o, '}');
    json_close(&o, '}');
    buf_add_char(out, '\n');
}

void call_openapi(struct call *c)
{
    struct buf *kept = &c->api->openapi;

    if (!kept->n) {
        buf_init(kept, OPENAPI_BYTES);
        openapi_write(kept);
    }
    if (kept->over) {
        buf_fini(kept);
        call_refuse(c, ERR_NOMEM, STR(""));
        return;
    }
    buf_add_str(c->body, buf_str(kept));
    call_answer(c, 200, SPEAK_JSON);
}

/* docs/protocol.md. */

static void reference_add_call(struct buf *out, const struct call_row *row)
{
    buf_addf(out, "| `%.*s ", STR_ARG(row->method));
    call_row_add_path(out, row, false);
    buf_add_str(out, STR("` | "));
}

/* The limits of an argument; "|" would end a cell. */
static void reference_add_arg(struct buf *out, const struct field *f)
{
    buf_addf(out, "`%s`", f->name);
    if (f->type == FIELD_WORD || f->of) {
        struct str words = str_of(f->of);
        const char *mark = " ";

        while (words.n) {
            struct str word = str_cut(&words, '|');

            buf_addf(out, "%s`%.*s`", mark, STR_ARG(word));
            mark = ", ";
        }
    } else if (f->type == FIELD_INT && f->max < INT64_MAX) {
        buf_addf(out, " %lld to %lld", (long long)f->min, (long long)f->max);
    } else if (f->type == FIELD_REAL) {
        buf_addf(out, " %lld to %lld", (long long)f->min, (long long)f->max);
    } else if (f->type == FIELD_BOOL) {
        buf_add_str(out, STR(" `true`, `false`"));
    }
    if (f->unset)
        buf_addf(out, " (default %s)", f->unset);
    if (f->about)
        buf_addf(out, ": %s", f->about);
}

static void reference_add_methods(struct buf *out)
{
    const struct method_row *row;

    buf_add_str(out, STR("\nMethods of [the hub](#the-hub):\n\n"
                         "| method | scope | what it does |\n"
                         "| --- | --- | --- |\n"));
    for (size_t i = 0; (row = method_row(i)); i++) {
        struct str scope = scope_name((enum scope)row->scope);

        buf_addf(out, "| `%.*s` | ", STR_ARG(row->name));
        if (row->scope)
            buf_addf(out, "`%.*s`", STR_ARG(scope));
        else
            buf_add_str(out, STR("any token"));
        if (row->flags & FOR_AGENTS)
            buf_add_str(out, STR(", for agents"));
        buf_addf(out, " | %s |\n", row->about);
    }
}

void api_write_reference(struct buf *out)
{
    const struct call_row *row;

    buf_add_str(out, STR("| call | scope | what it does |\n"
                         "| --- | --- | --- |\n"));
    for (size_t i = 0; (row = call_row(i)); i++) {
        struct str scope = scope_name((enum scope)(row->who & SCOPE_ALL));

        if (row->who & PUBLIC)
            continue;
        reference_add_call(out, row);
        if (row->who == ANY_TOKEN)
            buf_add_str(out, STR("any token"));
        else
            buf_addf(out, "`%.*s`", STR_ARG(scope));
        buf_addf(out, " | %s |\n", row->about);
    }
    buf_add_str(out, STR("\nArguments of the query:\n\n"
                         "| call | arguments |\n| --- | --- |\n"));
    for (size_t i = 0; (row = call_row(i)); i++) {
        if (!row->args)
            continue;
        reference_add_call(out, row);
        for (const struct field *f = row->args; f->name; f++) {
            buf_add_str(out, f == row->args ? STR("") : STR("; "));
            reference_add_arg(out, f);
        }
        buf_add_str(out, STR(" |\n"));
    }
    reference_add_methods(out);
}
