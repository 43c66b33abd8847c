/* The server's side of the handshake: a table of requests, read by the reader
 * of HTTP as they would be, and what is said to them. */
#include "base/fault.h"
#include "net/server/ws.h"
#include "test/t.h"

#define GET    "GET /x HTTP/1.1\r\nHost: h\r\n"
#define UP     "Upgrade: websocket\r\n"
#define CON    "Connection: Upgrade\r\n"
#define VER    "Sec-WebSocket-Version: 13\r\n"
#define SAMPLE "dGhlIHNhbXBsZSBub25jZQ=="
#define KEY    "Sec-WebSocket-Key: " SAMPLE "\r\n"
#define REST   CON VER KEY
#define ALL    GET UP REST
#define PROTO  "Sec-WebSocket-Protocol: "
#define EXT    "Sec-WebSocket-Extensions: "

#define BAD(what) "bad_request: " what
#define NO_UP     BAD("the Upgrade header does not name websocket")
#define NO_CON    BAD("the Connection header does not name Upgrade")
#define NO_KEY    BAD("Sec-WebSocket-Key is not 16 bytes in base64")
#define NO_PROTO  BAD("Sec-WebSocket-Protocol is not a list of words")
#define NO_EXT    BAD("Sec-WebSocket-Extensions is not a list of extensions")
#define NOT_13    "upgrade_required: the version of WebSocket spoken here is 13"

struct row {
    const char *head, *as;
};

/* A request with its slices; the bytes live as long as it does. */
struct asked {
    char bytes[4096];
    struct http_header slots[64];
    struct http_request rq;
};

static void ask(struct asked *a, const char *head)
{
    static const struct http_limits limits = {1000, 4000, 64, 100};
    struct http_parse p = {.phase = HTTP_HEAD};
    size_t n = (size_t)snprintf(a->bytes, sizeof(a->bytes), "%s%s", head,
                                strstr(head, "\r\n\r\n") ? "" : "\r\n");

    if (http_parse(&p, &limits, a->bytes, &n, a->slots, &a->rq) != HTTP_DONE)
        T_FAIL("not a request: %s (%s)", head, p.what ? p.what : "cut off");
}

/* "ok" with the protocols, or "code: words". */
static bool answers(const char *head, const char *as)
{
    struct asked a;
    struct ws_hello hello;
    struct why why = {""};
    char said[600];
    enum err e;

    ask(&a, head);
    e = ws_hello_read(&a.rq, &hello, &why);
    if (e)
        snprintf(said, sizeof(said), "%s: %s", err_row(e)->code, why.text);
    else
        snprintf(said, sizeof(said), "ok [%.*s]", STR_ARG(hello.protocols));
    CHECK(e == OK || (hello.protocols.n == 0 && hello.accept[0] == '\0'));
    CHECK(e || strcmp(hello.accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") == 0 ||
          !strstr(head, SAMPLE));
    if (strcmp(said, as) == 0)
        return true;
    fprintf(stderr, "said: %s\nwanted: %s\nto: %s\n", said, as, head);
    return false;
}

static void check_rows(const struct row *rows, size_t n)
{
    int n_wrong = 0;

    for (size_t i = 0; i < n; i++)
        n_wrong += !answers(rows[i].head, rows[i].as);
    CHECK(n_wrong == 0);
}

#define CHECK_ROWS(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))

TEST(a_good_request_is_agreed_to)
{
    static const struct row rows[] = {
        {ALL, "ok []"},
        {GET KEY VER CON UP, "ok []"},
        {GET "UPGRADE: WebSocket\r\nconnection: upgrade\r\n"
             "sec-websocket-version: 13\r\nSEC-WEBSOCKET-KEY: " SAMPLE "\r\n",
         "ok []"},
        {GET "Upgrade:\t websocket \t\r\n" REST, "ok []"},
        {GET UP CON VER "Sec-WebSocket-Key:  " SAMPLE "  \r\n", "ok []"},
        {ALL "Content-Length: 0\r\n", "ok []"},
        {ALL "Origin: http://h\r\nCookie: a=b\r\n", "ok []"},
        {ALL "Sec-WebSocket-Accept: x\r\n", "ok []"},
        {"GET http://h/x?y=z HTTP/1.1\r\nHost: h\r\n" UP REST, "ok []"},
    };

    CHECK_ROWS(rows);
}

TEST(upgrade_and_connection_are_lists)
{
    static const struct row rows[] = {
        {GET "Upgrade: h2c, websocket\r\n" REST, "ok []"},
        {GET "Upgrade: WEBSOCKET,h2c\r\n" REST, "ok []"},
        {GET "Upgrade: h2c\r\nUpgrade: websocket\r\n" REST, "ok []"},
        {GET "Upgrade: ,, websocket ,\r\n" REST, "ok []"},
        {GET REST, NO_UP},
        {GET "Upgrade:\r\n" REST, NO_UP},
        {GET "Upgrade: h2c\r\n" REST, NO_UP},
        {GET "Upgrade: websockets\r\n" REST, NO_UP},
        {GET "Upgrade: websocke\r\n" REST, NO_UP},
        {GET "Upgrade: websocket/13\r\n" REST, NO_UP},
        {GET "Upgrade: web socket\r\n" REST, NO_UP},
        {GET "Upgrade: h2c websocket\r\n" REST, NO_UP},
        {GET "Upgrade: h2c; websocket\r\n" REST, NO_UP},
        {GET "Upgrade: \"websocket\"\r\n" REST, NO_UP},
        {GET UP "Connection: keep-alive, Upgrade\r\n" VER KEY, "ok []"},
        {GET UP "Connection: uPgRaDe,keep-alive\r\n" VER KEY, "ok []"},
        {GET UP "Connection: keep-alive\r\n" CON VER KEY, "ok []"},
        {GET UP "Connection: ,upgrade,\r\n" VER KEY, "ok []"},
        {GET UP VER KEY, NO_CON},
        {GET UP "Connection:\r\n" VER KEY, NO_CON},
        {GET UP "Connection: keep-alive\r\n" VER KEY, NO_CON},
        {GET UP "Connection: close\r\n" VER KEY, NO_CON},
        {GET UP "Connection: upgraded\r\n" VER KEY, NO_CON},
        {GET UP "Connection: no upgrade\r\n" VER KEY, NO_CON},
        {GET UP "Connection: keep-alive; upgrade\r\n" VER KEY, NO_CON},
    };

    CHECK_ROWS(rows);
}

TEST(only_get_of_http_11_without_a_body_becomes_one)
{
    static const char no_get[] = BAD("a WebSocket begins with GET");
    static const char no_body[] = BAD("a request for a WebSocket has no body");
    static const struct row rows[] = {
        {"POST /x HTTP/1.1\r\nHost: h\r\n" UP REST, no_get},
        {"HEAD /x HTTP/1.1\r\nHost: h\r\n" UP REST, no_get},
        {"OPTIONS * HTTP/1.1\r\nHost: h\r\n" UP REST, no_get},
        {"get /x HTTP/1.1\r\nHost: h\r\n" UP REST, no_get},
        {"GETS /x HTTP/1.1\r\nHost: h\r\n" UP REST, no_get},
        {"GET /x HTTP/1.0\r\nHost: h\r\n" UP REST,
         BAD("a WebSocket begins with HTTP/1.1")},
        {ALL "Content-Length: 1\r\n\r\nx", no_body},
        {ALL "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", no_body},
        {ALL "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", no_body},
    };

    CHECK_ROWS(rows);
}

TEST(the_version_is_13_and_said_once)
{
    static const char missing[] =
        BAD("the Sec-WebSocket-Version header is missing");
    static const char twice[] =
        BAD("there are two Sec-WebSocket-Version headers");
    static const struct row rows[] = {
        {GET UP CON KEY, missing},
        {GET UP CON KEY VER VER, twice},
        {GET UP CON KEY VER "Sec-WebSocket-Version: 8\r\n", twice},
        {GET UP CON KEY "Sec-WebSocket-Version: 8\r\n" VER, twice},
        {GET UP CON KEY "Sec-WebSocket-Version: 12\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 14\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 0\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 8\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 255\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 13, 14\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 13,13\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 013\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 1 3\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 13.0\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: +13\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: \"13\"\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version:\r\n", NOT_13},
        {GET UP CON KEY "Sec-WebSocket-Version: 130\r\n", NOT_13},
        /* Another version may write its key in another way. */
        {GET UP CON "Sec-WebSocket-Version: 99\r\n", NOT_13},
    };

    CHECK_ROWS(rows);
}

TEST(the_key_is_16_bytes_in_base64_and_said_once)
{
    static const char missing[] =
        BAD("the Sec-WebSocket-Key header is missing");
    static const char twice[] = BAD("there are two Sec-WebSocket-Key headers");
    static const struct row rows[] = {
        {GET UP CON VER, missing},
        {GET UP CON VER KEY KEY, twice},
        {GET UP CON VER KEY "sec-websocket-key: x\r\n", twice},
        {GET UP CON VER "Sec-WebSocket-Key1: " SAMPLE "\r\n", missing},
    };
    static const struct row keys[] = {
        {"AAAAAAAAAAAAAAAAAAAAAA==", "ok []"},
        {"/////////////////////w==", "ok []"},
        {"++++++++++++++++++++++==", NO_KEY}, /* bits beyond the sixteenth */
        {"0123456789abcdefghijkQ==", "ok []"},
        {"0123456789abcdefghijkg==", "ok []"},
        {"0123456789abcdefghijkR==", NO_KEY},
        {"0123456789abcdefghijkB==", NO_KEY},
        {"0123456789abcdefghijkI==", NO_KEY},
        {"", NO_KEY},
        {"x", NO_KEY},
        {"AAAAAAAAAAAAAAAAAAAAAA", NO_KEY},    /* no padding */
        {"AAAAAAAAAAAAAAAAAAAAAA=", NO_KEY},   /* half of it */
        {"AAAAAAAAAAAAAAAAAAAAAA===", NO_KEY}, /* too much */
        {"AAAAAAAAAAAAAAAAAAAAA===", NO_KEY},  /* a digit short */
        {"AAAAAAAAAAAAAAAAAAAAAAA=", NO_KEY},  /* 17 bytes */
        {"AAAAAAAAAAAAAAAAAAAAAAAA", NO_KEY},  /* 18 bytes */
        {"AAAAAAAAAAAAAAAAAAAA", NO_KEY},      /* 15 bytes */
        {"AAAAAAAAAAAAAAAAAAAAAAAAAA==", NO_KEY},
        {"AAAAAAAAAA AAAAAAAAAAA==", NO_KEY},
        {"AAAAAAAAAA-AAAAAAAAAAA==", NO_KEY}, /* the alphabet of URLs */
        {"AAAAAAAAAA_AAAAAAAAAAA==", NO_KEY},
        {"AAAAAAAAAA=AAAAAAAAAAA==", NO_KEY},
        {"AAAAAAAAAA\xc3\xa9"
         "AAAAAAAAAA==",
         NO_KEY},
        {"AAAAAAAAAAAAAAAAAAAAAA==, x", NO_KEY},
        {"\"AAAAAAAAAAAAAAAAAAAAA==\"", NO_KEY},
    };

    CHECK_ROWS(rows);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char head[512];

        snprintf(head, sizeof(head), GET UP CON VER "Sec-WebSocket-Key: %s\r\n",
                 keys[i].head);
        CHECK(answers(head, keys[i].as));
    }
}

/* Each byte in each place: the alphabet, and in the last place four of it. */
TEST(a_key_is_judged_byte_by_byte)
{
    for (int at = 0; at < WS_KEY_BYTES; at++)
        for (int c = 0x21; c < 0x7f; c++) {
            char head[512], key[] = "AAAAAAAAAAAAAAAAAAAAAA==";
            bool is_digit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                            (c >= '0' && c <= '9') || c == '+' || c == '/';
            bool is_good = at < 21    ? is_digit
                           : at == 21 ? strchr("AQgw", c) != NULL
                                      : c == '=';

            key[at] = (char)c;
            snprintf(head, sizeof(head),
                     GET UP CON VER "Sec-WebSocket-Key: %s\r\n", key);
            CHECK(answers(head, is_good ? "ok []" : NO_KEY));
        }
}

TEST(protocols_are_words_and_none_is_there_twice)
{
    static const char twice[] = BAD("Sec-WebSocket-Protocol names one twice");
    static const struct row rows[] = {
        {ALL PROTO "chat\r\n", "ok [chat]"},
        {ALL PROTO "chat, superchat,x.y-z\r\n", "ok [chat, superchat,x.y-z]"},
        {ALL PROTO "a\r\n" PROTO "b, c\r\n", "ok [a]"},
        {ALL PROTO "a, A\r\n", "ok [a, A]"},
        {ALL PROTO "\r\n", NO_PROTO},
        {ALL PROTO " , ,\r\n", NO_PROTO},
        {ALL PROTO "a,\r\n", "ok [a,]"}, /* RFC 9110, 5.6.1.2 */
        {ALL PROTO ",a\r\n", "ok [,a]"},
        {ALL PROTO "a,, ,b\r\n", "ok [a,, ,b]"},
        {ALL PROTO "a\r\n" PROTO "\r\n", "ok [a]"},
        {ALL PROTO "\r\n" PROTO "a\r\n", "ok [a]"},
        {ALL PROTO "a,,a\r\n", twice},
        {ALL PROTO "a,b c,\r\n", NO_PROTO},
        {ALL PROTO "a b\r\n", NO_PROTO},
        {ALL PROTO "a;b\r\n", NO_PROTO},
        {ALL PROTO "a/b\r\n", NO_PROTO},
        {ALL PROTO "\"a\"\r\n", NO_PROTO},
        {ALL PROTO "\xc3\xa9\r\n", NO_PROTO},
        {ALL PROTO "a, b, a\r\n", twice},
        {ALL PROTO "a\r\n" PROTO "a\r\n", twice},
    };

    CHECK_ROWS(rows);
}

TEST(a_client_may_offer_32_protocols)
{
    char head[2048] = ALL PROTO "p0";
    struct asked a;
    struct ws_hello hello;

    for (int i = 1; i < WS_PROTOCOLS_MAX; i++)
        snprintf(head + strlen(head), 16, ",p%d", i);
    snprintf(head + strlen(head), 8, "\r\n");
    ask(&a, head);
    CHECK(ws_hello_read(&a.rq, &hello, NULL) == OK);
    CHECK(ws_offers(&a.rq, STR("p31")));
    snprintf(head + strlen(head), 64, PROTO "one-more\r\n");
    CHECK(answers(head, BAD("Sec-WebSocket-Protocol names more than 32")));
}

TEST(what_is_offered_is_found_with_its_case_in_any_header)
{
    struct asked a;

    ask(&a, ALL PROTO "chat, Super\r\n" PROTO "other\r\n");
    CHECK(ws_offers(&a.rq, STR("chat")));
    CHECK(ws_offers(&a.rq, STR("Super")));
    CHECK(ws_offers(&a.rq, STR("other")));
    CHECK(!ws_offers(&a.rq, STR("super")));
    CHECK(!ws_offers(&a.rq, STR("cha")));
    CHECK(!ws_offers(&a.rq, STR("chat, Super")));
    CHECK(!ws_offers(&a.rq, STR("")));
    ask(&a, ALL PROTO ",chat,, Super,\r\n");
    CHECK(ws_offers(&a.rq, STR("chat")) && ws_offers(&a.rq, STR("Super")));
    CHECK(!ws_offers(&a.rq, STR("")));
    ask(&a, ALL);
    CHECK(!ws_offers(&a.rq, STR("chat")));
}

TEST(extensions_may_be_offered_if_they_are_well_written)
{
    static const struct row rows[] = {
        {ALL EXT "permessage-deflate\r\n", "ok []"},
        {ALL EXT "permessage-deflate; client_max_window_bits\r\n", "ok []"},
        {ALL EXT "a;b=c;d=\"e\" ; f , g\t;\th = 1,i\r\n", "ok []"},
        {ALL EXT "a; b=\"\\c\\d\"\r\n", "ok []"},
        {ALL EXT "a\r\n" EXT "b; c\r\n", "ok []"},
        {ALL EXT "\r\n", NO_EXT},
        {ALL EXT "a,\r\n", NO_EXT},
        {ALL EXT ",a\r\n", NO_EXT},
        {ALL EXT "a;\r\n", NO_EXT},
        {ALL EXT "a; ;b\r\n", NO_EXT},
        {ALL EXT ";a\r\n", NO_EXT},
        {ALL EXT "a; b=\r\n", NO_EXT},
        {ALL EXT "a; =b\r\n", NO_EXT},
        {ALL EXT "a=b\r\n", NO_EXT},
        {ALL EXT "a b\r\n", NO_EXT},
        {ALL EXT "a; b=\"\"\r\n", NO_EXT},
        {ALL EXT "a; b=\"c\r\n", NO_EXT},
        {ALL EXT "a; b=\"c d\"\r\n", NO_EXT},
        {ALL EXT "a; b=\"c\\\"\r\n", NO_EXT},
        {ALL EXT "a; b=\"c\\\r\n", NO_EXT},
        {ALL EXT "a; b=\"c\"d\r\n", NO_EXT},
        {ALL EXT "a; b=c=d\r\n", NO_EXT},
        {ALL EXT "a\r\n" EXT "@\r\n", NO_EXT},
        {ALL EXT "\xc3\xa9\r\n", NO_EXT},
    };

    CHECK_ROWS(rows);
}

TEST(whether_a_websocket_is_asked_for_is_seen_by_upgrade_alone)
{
    struct asked a;

    ask(&a, GET "Upgrade: h2c, WebSocket\r\n");
    CHECK(ws_is_asked(&a.rq));
    ask(&a, GET "Upgrade: h2c\r\n" REST);
    CHECK(!ws_is_asked(&a.rq));
    ask(&a, GET);
    CHECK(!ws_is_asked(&a.rq));
}

TEST(the_answer_to_a_key_is_that_of_the_standard)
{
    char accept[WS_ACCEPT_BYTES + 1];

    CHECK(ws_accept_of(SAMPLE, accept) == OK);
    CHECK_STR(str_of(accept), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    CHECK(ws_accept_of("x3JJHMbDL1EzLkh9GBhXDw==", accept) == OK);
    CHECK_STR(str_of(accept), "HSmrc0sMlYUkAGmm5OPpG2HaGWk=");
}

TEST(the_handshake_survives_every_fault)
{
    struct asked a;
    struct ws_hello hello;
    long nth = 0;

    ask(&a, ALL PROTO "a\r\n");
    do {
        enum err e;

        fault_arm(++nth);
        e = ws_hello_read(&a.rq, &hello, NULL);
        CHECK(e == (fault_fired() ? ERR_INTERNAL : OK));
        CHECK((hello.accept[0] != '\0') == (e == OK));
        CHECK((hello.protocols.n != 0) == (e == OK));
    } while (fault_fired());
    CHECK(nth > 1);
}
