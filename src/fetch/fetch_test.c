#include "fetch/fetch.h"

#include "test/lib/fetch_stage.h"

TEST(an_answer_comes_whole)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t = get(s, p, "/a?b=c#d");

    CHECK_INT(t->e, OK);
    CHECK_INT(t->status, 200);
    CHECK_STR(buf_str(&t->body), "fine");
    CHECK_STR(str_of(t->header), "yes");
    CHECK(t->n_heads == 1 && t->n_done == 1 && t->n_headers == 2);
    CHECK(strcmp(t->url, url_at(p, "/a?b=c")) == 0);
    CHECK(peer_heard(p, "GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:"));
    CHECK(peer_heard(p, "\r\nUser-Agent: signalbox/"));
    CHECK(!peer_heard(p, "Accept-Encoding") && !peer_heard(p, "Expect"));
    told_free(t);
    stage_free(s);
}
