/* Answers of providers, good and bad. */
#include "test/t.h"

#include <math.h>

#include "base/buf.h"
#include "base/fault.h"
#include "embed/embed.h"
#include "embed/reply.h"
#include "net/client/fetch.h"

static struct why why;

static enum err read_text(const char *text, size_t n, uint32_t dims,
                          struct reply *r)
{
    why.text[0] = '\0';
    return reply_read(str_of(text), n, dims, r, &why);
}

TEST(vectors_are_where_their_index_says_and_one_long)
{
    struct reply r;

    CHECK(read_text("{\"data\":[{\"embedding\":[0,4.0],\"index\":1},"
                    " {\"index\" : 0, \"object\":\"x\", "
                    "\"embedding\" : [ 3e0 , -4 ] } ]}",
                    2, 0, &r) == OK);
    CHECK(r.dims == 2 && r.n_good == 2 && r.is_good[0] && r.is_good[1]);
    CHECK(fabsf(r.vectors[0] - 0.6F) < 1e-6F);
    CHECK(fabsf(r.vectors[1] + 0.8F) < 1e-6F);
    CHECK(r.vectors[2] == 0 && r.vectors[3] == 1);
    reply_fini(&r);
}

TEST(base64_is_taken_too)
{
    /* 3, -4 as floats, lowest byte first */
    static const char *const forms[] = {"AABAQAAAgMA=", "AABAQAAAgMA"};
    char text[128];
    struct reply r;

    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "{\"data\":[{\"index\":0,\"embedding\":\"%s\"}]}", forms[i]);
        CHECK(read_text(text, 1, 2, &r) == OK);
        CHECK(fabsf(r.vectors[0] - 0.6F) < 1e-6F);
        CHECK(fabsf(r.vectors[1] + 0.8F) < 1e-6F);
        reply_fini(&r);
    }
}

TEST(one_alone_needs_no_index)
{
    struct reply r;

    CHECK(read_text("{\"data\":[{\"embedding\":[1]}]}", 1, 1, &r) == OK);
    reply_fini(&r);
}

TEST(what_cannot_be_used_is_said)
{
    static const struct {
        const char *text;
        size_t n;
        uint32_t dims;
        const char *words;
    } cases[] = {
        {"", 1, 0, "empty"},
        {"   ", 1, 0, "empty"},
        {"<html><body>Welcome</body></html>", 1, 0, "web page"},
        {"\n<!doctype html>", 1, 0, "/v1/embeddings"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,2", 1, 0, "ends too early"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,NaN]}]}", 1, 0,
         "not a JSON"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,1e999]}]}", 1, 0,
         "not a JSON"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1]}]} extra", 1, 0,
         "not a JSON"},
        {"[1,2,3]", 1, 0, "not a JSON object"},
        {"null", 1, 0, "not a JSON object"},
        {"{}", 1, 0, "\"data\""},
        {"{\"data\":{}}", 1, 0, "\"data\""},
        {"{\"data\":null}", 1, 0, "\"data\""},
        {"{\"data\":[]}", 2, 0, "0 vectors came where 2"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1]}]}", 2, 0, "1 vectors"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1]},"
         "{\"index\":1,\"embedding\":[1]}]}",
         1, 0, "more vectors"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1]},"
         "{\"index\":0,\"embedding\":[1]}]}",
         2, 0, "two vectors have the \"index\" 0"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1]},"
         "{\"index\":2,\"embedding\":[1]}]}",
         2, 0, "beyond the 2"},
        {"{\"data\":[{\"index\":-1,\"embedding\":[1]}]}", 1, 0, "beyond"},
        {"{\"data\":[{\"index\":99999999999999999999,\"embedding\":[1]}]}", 1,
         0, "does not fit"},
        {"{\"data\":[{\"index\":0.0,\"embedding\":[1]}]}", 1, 0, "\"index\""},
        {"{\"data\":[{\"index\":\"0\",\"embedding\":[1]}]}", 1, 0, "\"index\""},
        {"{\"data\":[{\"embedding\":[1]},{\"embedding\":[1]}]}", 2, 0,
         "beyond"},
        {"{\"data\":[{\"index\":0}]}", 1, 0, "no \"embedding\""},
        {"{\"data\":[7]}", 1, 0, "no \"embedding\""},
        {"{\"data\":[{\"index\":0,\"embedding\":[]}]}", 1, 0, "none"},
        {"{\"data\":[{\"index\":0,\"embedding\":null}]}", 1, 0, "none"},
        {"{\"data\":[{\"index\":0,\"embedding\":{}}]}", 1, 0, "none"},
        {"{\"data\":[{\"index\":0,\"embedding\":\"AAA=\"}]}", 1, 0, "none"},
        {"{\"data\":[{\"index\":0,\"embedding\":\"AAB!QA==\"}]}", 1, 0,
         "no number"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,2]}]}", 1, 3,
         "2 numbers where 3"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,2,3,4]}]}", 1, 3,
         "4 numbers where 3"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,null]}]}", 1, 0,
         "no number"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,\"2\"]}]}", 1, 0,
         "no number"},
        {"{\"data\":[{\"index\":0,\"embedding\":[[1],[2]]}]}", 1, 0,
         "no number"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,1e39]}]}", 1, 0,
         "too large"},
        {"{\"data\":[{\"index\":0,\"embedding\":\"AADAfw==\"}]}", 1, 0,
         "too large, or none"}, /* NaN */
        {"{\"data\":[{\"index\":0,\"embedding\":[0,0.0,-0.0]}]}", 1, 0,
         "all zero"},
        {"{\"data\":[{\"index\":0,\"embedding\":[1,2]},"
         "{\"index\":1,\"embedding\":[1,2,3]}]}",
         2, 0, "3 numbers where 2"},
    };
    struct reply r;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum err e = read_text(cases[i].text, cases[i].n, cases[i].dims, &r);

        if (e != ERR_BAD_REQUEST || !strstr(why.text, cases[i].words))
            T_FAIL("%s: %d, %s", cases[i].text, e, why.text);
    }
}

TEST(one_bad_vector_is_that_text_s_alone)
{
    struct reply r;

    CHECK(read_text("{\"data\":[{\"index\":0,\"embedding\":[1,0]},"
                    "{\"index\":1,\"embedding\":[null,0]},"
                    "{\"index\":2,\"embedding\":[0,0]},"
                    "{\"index\":3,\"embedding\":[1,0,0]},"
                    "{\"index\":4,\"embedding\":[0,1]}]}",
                    5, 2, &r) == OK);
    CHECK(r.n_good == 2 && r.is_good[0] && !r.is_good[1] && !r.is_good[2] &&
          !r.is_good[3] && r.is_good[4]);
    CHECK(r.vectors[0] == 1 && r.vectors[2] == 0 && r.vectors[9] == 1);
    CHECK(strstr(r.why.text, "3 numbers where 2"));
    reply_fini(&r);
    /* The same while the length is unknown. */
    CHECK(read_text("{\"data\":[{\"index\":0,\"embedding\":[0,0]},"
                    "{\"index\":1,\"embedding\":[1,1]}]}",
                    2, 0, &r) == OK);
    CHECK(r.n_good == 1 && r.dims == 2 && r.is_good[1]);
    reply_fini(&r);
}

TEST(a_vector_has_a_limit)
{
    struct buf b;
    struct reply r;

    buf_init(&b, 1 << 20);
    for (int more = 0; more < 2; more++) {
        buf_clear(&b);
        buf_addf(&b, "{\"data\":[{\"index\":0,\"embedding\":[1");
        for (int i = 1; i < EMBED_DIMS_MAX + more; i++)
            buf_addf(&b, ",0");
        buf_addf(&b, "]}]}");
        if (more) {
            CHECK(reply_read(buf_str(&b), 1, 0, &r, &why) == ERR_BAD_REQUEST);
            CHECK(strstr(why.text, "has more"));
        } else {
            CHECK(reply_read(buf_str(&b), 1, 0, &r, &why) == OK);
            CHECK_INT(r.dims, EMBED_DIMS_MAX);
            reply_fini(&r);
        }
    }
    buf_fini(&b);
}

TEST(every_beginning_of_an_answer_is_refused)
{
    static const char whole[] =
        "{\"object\":\"list\",\"data\":[{\"index\":1,\"embedding\":[1,2]},"
        "{\"embedding\":\"AACAPwAAAEA=\",\"index\":0}],\"model\":\"\\u0041\"}";
    struct reply r;

    for (size_t n = 0; n < sizeof(whole) - 1; n++)
        CHECK(reply_read((struct str){whole, n}, 2, 2, &r, &why) ==
              ERR_BAD_REQUEST);
    CHECK(read_text(whole, 2, 2, &r) == OK && r.n_good == 2);
    reply_fini(&r);
}

TEST(without_memory_it_says_so)
{
    struct reply r;

    fault_arm_at("embed.reply", 1);
    CHECK(read_text("{\"data\":[{\"index\":0,\"embedding\":[1]}]}", 1, 0, &r) ==
          ERR_NOMEM);
    CHECK(fault_fired());
}

/* The messages. */

static const char *message_of(const char *body, const char *secret)
{
    static char out[64];
    struct str secrets[] = {str_of(secret), STR("")};

    fetch_complaint(str_of(body), secrets, 2, out, sizeof(out));
    return out;
}

TEST(every_shape_of_error_is_understood)
{
    static const char *const bodies[] = {
        "{\"error\":{\"message\":\"too long\",\"type\":\"x\"}}",
        "{\"error\":\"too long\",\"error_type\":\"Validation\"}",
        "{\"object\":\"error\",\"message\":\"too long\",\"code\":400}",
        "{\"detail\":\"too long\"}",
    };

    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
        CHECK_STR(str_of(message_of(bodies[i], "")), "too long");
    CHECK_STR(str_of(message_of("{\"error\":7}", "")), "");
    CHECK_STR(str_of(message_of("<html>", "")), "");
    CHECK_STR(str_of(message_of("", "")), "");
    CHECK_STR(str_of(message_of("{\"detail\":[{\"msg\":1}]}", "")), "");
}

TEST(a_secret_in_it_is_blotted_out)
{
    CHECK_STR(str_of(message_of("{\"error\":\"no sk-1, sk-1sk-1\"}", "sk-1")),
              "no [the key], [the key][the key]");
    CHECK_STR(str_of(message_of("{\"error\":\"\\u0073k-1\"}", "sk-1")),
              "[the key]");
}

TEST(it_is_one_line_that_fits)
{
    char body[256];
    size_t n;

    CHECK_STR(str_of(message_of("{\"error\":\"a\\nb\\u001b[31m\"}", "")),
              "a?b?[31m");
    n = (size_t)snprintf(body, sizeof(body), "{\"error\":\"");
    memset(body + n, 'e', 100);
    snprintf(body + n + 100, 10, "\"}");
    CHECK_INT(strlen(message_of(body, "")), 63);
}
