/* The configuration through the API, with a fake server: who may call, the form
 * of the answer, and rejections. test/flow/config_test.py tests the real
 * one. */
#include "api/api.h"
#include "test/lib/server_stage.h"

static char answer[HOUSE_ANSWER_MAX];

struct told {
    enum err e;
    int n_reloads;
};

static void write_one(void *ctx, struct json_out *o)
{
    (void)ctx;
    json_key(o, STR("version"));
    json_put_str(o, STR("v1"));
}

static enum err reload_one(void *ctx, struct json_out *o, struct why *why)
{
    struct told *t = ctx;

    t->n_reloads++;
    json_key(o, STR("changed"));
    json_open(o, '[');
    json_close(o, ']');
    return t->e ? why_err(why, t->e, "line 3 is wrong") : OK;
}

TEST(an_admin_sees_it_and_has_it_read_again)
{
    struct told t = {.e = OK};
    struct house h;

    house_init(&h);
    h.api.config = (struct api_config){write_one, reload_one, &t};
    CHECK_INT(house_ask(&h, "GET /api/config", "", "", answer), 200);
    CHECK(strstr(answer, "{\"version\":\"v1\"}\n"));
    CHECK_INT(house_ask(&h, "POST /api/config/reload", "", "", answer), 200);
    CHECK(strstr(answer, "{\"changed\":[]}\n"));
    CHECK_INT(t.n_reloads, 1);
    house_fini(&h);
}

TEST(what_is_wrong_with_it_is_a_refusal_with_details)
{
    struct told t = {.e = ERR_BAD_CONFIG};
    struct house h;

    house_init(&h);
    h.api.config = (struct api_config){write_one, reload_one, &t};
    CHECK_INT(house_ask(&h, "POST /api/config/reload", "", "{}", answer), 422);
    CHECK(strstr(answer, "\"code\":\"bad_config\""));
    CHECK(strstr(answer, "\"message\":\"line 3 is wrong\""));
    CHECK(strstr(answer, "\"details\":{\"changed\":[]}"));
    house_fini(&h);
}

TEST(a_body_that_says_something_reloads_nothing)
{
    struct told t = {.e = OK};
    struct house h;

    house_init(&h);
    h.api.config = (struct api_config){write_one, reload_one, &t};
    CHECK_INT(house_ask(&h, "POST /api/config/reload", "", "{\"file\":\"x\"}",
                        answer),
              400);
    CHECK_INT(t.n_reloads, 0);
    house_fini(&h);
}

TEST(where_nobody_knows_it_there_is_none)
{
    struct house h;

    house_init(&h);
    CHECK_INT(house_ask(&h, "GET /api/config", "", "", answer), 404);
    CHECK_INT(house_ask(&h, "POST /api/config/reload", "", "", answer), 404);
    house_fini(&h);
}
