/* Name lookups. getaddrinfo is this file's own: the linker prefers it to the C
 * library's, also for libcurl's threads. So the test decides the meaning of a
 * name, which may change or take forever. */
#include "net/client/internal.h"

#include <netdb.h>
#include <pthread.h>
#include <semaphore.h>

#include "test/lib/fetch_stage.h"

/* Answers in turn, the last one again and again. */
struct name {
    const char *name;
    const char *answers[4]; /* "1.2.3.4 ::1"; NULL: no such name */
    int n_asked;
};

static struct name names[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t let_go;  /* of those who look for "hangs.example" */
static int n_hanging; /* under lock */

static struct addrinfo *add(struct addrinfo *list, const char *text, int port)
{
    struct addrinfo *a = calloc(1, sizeof(*a) + sizeof(struct sockaddr_in6));
    struct sockaddr_in *v4 = (struct sockaddr_in *)(a + 1);
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(a + 1);

    a->ai_socktype = SOCK_STREAM;
    a->ai_addr = (struct sockaddr *)(a + 1);
    a->ai_next = list;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        a->ai_family = v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)port);
        a->ai_addrlen = sizeof(*v4);
    } else {
        inet_pton(AF_INET6, text, &v6->sin6_addr);
        a->ai_family = v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        a->ai_addrlen = sizeof(*v6);
    }
    return a;
}

static void hang(void)
{
    pthread_mutex_lock(&lock);
    n_hanging++;
    pthread_mutex_unlock(&lock);
    while (sem_wait(&let_go) != 0)
        continue;
    pthread_mutex_lock(&lock);
    n_hanging--;
    pthread_mutex_unlock(&lock);
}

static int hanging(void)
{
    int n;

    pthread_mutex_lock(&lock);
    n = n_hanging;
    pthread_mutex_unlock(&lock);
    return n;
}

static const char *next_answer(const char *node)
{
    const char *answer = NULL;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < 8 && !answer; i++)
        if (names[i].name && strcmp(names[i].name, node) == 0) {
            int at = names[i].n_asked++;

            while (at > 0 && !names[i].answers[at])
                at--;
            answer = names[i].answers[at];
        }
    pthread_mutex_unlock(&lock);
    return answer;
}

int getaddrinfo(const char *node, const char *service,
                const struct addrinfo *hints, struct addrinfo **res)
{
    struct addrinfo *list = NULL;
    const char *answer;
    char text[256], *at = NULL;

    (void)hints;
    if (strstr(node, "hangs.example"))
        hang();
    answer = next_answer(node);
    if (!answer && handle_is_address(str_of(node)))
        answer = node; /* for the other tests in this program */
    if (!answer)
        return EAI_NONAME;
    snprintf(text, sizeof(text), "%s", answer);
    for (char *word = strtok_r(text, " ", &at); word;
         word = strtok_r(NULL, " ", &at))
        list = add(list, word, service ? (int)strtol(service, NULL, 10) : 0);
    *res = list; /* the last word first */
    return 0;
}

void freeaddrinfo(struct addrinfo *a)
{
    while (a) {
        struct addrinfo *next = a->ai_next;

        free(a);
        a = next;
    }
}

static struct fetch_request to_name(const char *name, const struct peer *p)
{
    static char text[8][256];
    static int at;
    char *url = text[at++ % 8];

    snprintf(url, sizeof(text[0]), "http://%s:%d/", name, p->port);
    return request_to(url);
}

static struct told *check_error(struct stage *s, struct fetch_request rq,
                                enum err e)
{
    struct told *t = ask(s, rq);

    if (t->e != e)
        T_FAIL("%.*s: error %d: %s", STR_ARG(rq.url), t->e, t->why);
    return t;
}

TEST(a_name_is_looked_up)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    names[0] = (struct name){"a.example", {"127.0.0.1"}, 0};
    told_free(check_error(s, to_name("a.example", p), OK));
    CHECK(names[0].n_asked == 1 && peer_heard(p, "Host: a.example:"));
    told_free(check_error(s, to_name("none.example", p), ERR_UNREACHABLE));
    stage_free(s);
}

TEST(a_name_that_leads_inward_is_refused)
{
    static const char *const inward[] = {
        "127.0.0.1", "10.0.0.1",        "::1",     "::ffff:127.0.0.1",
        "0.0.0.0",   "169.254.169.254", "fe80::1", "64:ff9b::7f00:1",
        "::",        "127.0.0.1 ::1",   "fd00::2", "::7f00:1",
    };
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    stage_allow(s, NULL);
    for (size_t i = 0; i < sizeof(inward) / sizeof(inward[0]); i++) {
        char name[32];

        snprintf(name, sizeof(name), "n%zu.example", i);
        names[0] = (struct name){name, {inward[i]}, 0};
        told_free(check_error(s, to_name(name, p), ERR_ADDRESS));
    }
    CHECK(p->n_guests == 0);
    stage_free(s);
}

/* A user who may name hosts could otherwise explore the internal network. */
TEST(what_a_name_means_within_is_told_to_the_operator_alone)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t;
    char text[64];

    names[0] = (struct name){"db.example", {"10.20.30.40"}, 0};
    t = check_error(s, to_name("db.example", p), ERR_ADDRESS);
    CHECK(strstr(t->why, "db.example") && strstr(t->why, "is private"));
    CHECK(!strstr(t->why, "10.20"));
    snprintf(text, sizeof(text), "10.20.30.40:%d", p->port);
    CHECK(strcmp(t->refused, text) == 0);
    told_free(t);
    /* What was written as an address leads nowhere else. */
    t = check_error(s, request_to("http://10.20.30.40/"), ERR_ADDRESS);
    CHECK(str_starts(str_of(t->why), STR("10.20.30.40 is private: such ")));
    told_free(t);
    t = check_error(s, request_to("http://[fd00::1]:81/"), ERR_ADDRESS);
    CHECK(str_starts(str_of(t->why), STR("[fd00::1]:81 is private: such ")));
    told_free(t);
    t = check_error(s, request_to(url_at(p, "/")), OK);
    CHECK(!t->refused[0]);
    told_free(t);
    stage_free(s);
}

/* If a name has several addresses, the allowed ones are tried, in any order. */
TEST(a_name_that_leads_both_ways_leads_where_it_may)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t;

    stage_allow(s, "127.0.0.1");
    names[0] = (struct name){"a.example", {"10.0.0.1 127.0.0.1 ::1"}, 0};
    names[1] = (struct name){"b.example", {"127.0.0.1 10.0.0.1"}, 0};
    names[2] = (struct name){"c.example", {"127.0.0.2 10.0.0.1"}, 0};
    t = check_error(s, to_name("a.example", p), OK);
    CHECK(!t->why[0]);
    told_free(t);
    told_free(check_error(s, to_name("b.example", p), OK));
    CHECK(p->n_asked == 2);
    told_free(check_error(s, to_name("c.example", p), ERR_ADDRESS));
    CHECK(p->n_asked == 2);
    stage_free(s);
}

/* Only where no address may be is the guard the reason. */
TEST(a_name_that_leads_both_ways_fails_for_what_happened_where_it_may)
{
    static const char *const both[] = {"10.0.0.1 127.0.0.9",
                                       "127.0.0.9 10.0.0.1",
                                       "10.0.0.1 127.0.0.9 10.0.0.2"};
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *t;

    stage_allow(s, "127.0.0.9"); /* no listener there */
    for (size_t i = 0; i < sizeof(both) / sizeof(both[0]); i++) {
        char name[32];

        snprintf(name, sizeof(name), "n%zu.example", i);
        names[0] = (struct name){name, {both[i]}, 0};
        t = check_error(s, to_name(name, p), ERR_UNREACHABLE);
        CHECK(!strstr(t->why, "outgoing.allow"));
        if (!strstr(t->why, "Connection refused"))
            T_FAIL("%s", t->why);
        told_free(t);
    }
    CHECK(fetch_stats(s->fetch).refused_by_guard_total == 0);
    stage_free(s);
}

/* Whether the only request there is has had an address. */
static bool has_tried(const struct stage *s)
{
    struct list_node *i = list_first(&s->fetch->by_state[REQUEST_ASKING]);

    return i && LIST_OF(i, struct request, node)->is_permitted;
}

/* libcurl 7.88 forgets to go on to the next address until a timer of its own
 * fires: after 200 ms, or never. A hundred turns do not take that long. */
TEST(the_next_address_is_tried_at_once)
{
    static const char *const dead[] = {
        "127.0.0.8 127.0.0.9", "127.0.0.7 127.0.0.8 127.0.0.9",
        "10.0.0.1 127.0.0.9", "127.0.0.9 10.0.0.1 10.0.0.2 127.0.0.8"};
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    stage_allow(s, "127.0.0.0/8"); /* no listeners there */
    for (size_t i = 0; i < sizeof(dead) / sizeof(dead[0]); i++) {
        struct told *t;
        char name[32];

        snprintf(name, sizeof(name), "n%zu.example", i);
        names[0] = (struct name){name, {dead[i]}, 0};
        t = start(s, to_name(name, p), &whole);
        UNTIL(s, t->n_done || has_tried(s));
        turn(s, 100);
        CHECK(t->n_done == 1 && t->e == ERR_UNREACHABLE);
        told_free(t);
    }
    stage_free(s);
}

/* Rebinding: the first answer is allowed, the second is not. A lookup for the
 * check alone would connect to the second. */
TEST(a_name_that_means_another_address_each_time_gains_nothing)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);

    stage_allow(s, "127.0.0.2"); /* no listener there */
    names[0] = (struct name){"a.example", {"127.0.0.2", "127.0.0.1"}, 0};
    told_free(check_error(s, to_name("a.example", p), ERR_UNREACHABLE));
    CHECK(names[0].n_asked == 1); /* one look-up a connection */
    stage_allow(s, "127.0.0.2");  /* and forget what was looked up */
    told_free(check_error(s, to_name("a.example", p), ERR_ADDRESS));
    CHECK(names[0].n_asked == 2 && p->n_guests == 0);
    stage_free(s);
}

/* A trusted request may have gone inward under a name, and its connection is
 * kept under that name. */
TEST(a_kept_connection_under_a_name_is_judged_by_its_address)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct fetch_request rq = to_name("a.example", p);

    stage_allow(s, NULL);
    names[0] = (struct name){"a.example", {"127.0.0.1", "8.8.8.8"}, 0};
    rq.is_trusted = true;
    told_free(check_error(s, rq, OK));
    rq.is_trusted = false;
    told_free(check_error(s, rq, ERR_ADDRESS));
    CHECK(p->n_asked == 1 && p->n_guests == 1);
    stage_free(s);
}

/* Look-ups that do not end. */

/* The loop goes on while the name is looked up, the request ends when it is
 * to, and the one look-up that goes on counts until it has ended. */
TEST(a_look_up_that_hangs_holds_up_nobody)
{
    struct fetch_opts opts = test_opts();
    struct fetch_request rq;
    struct told *hangs, *gone, *t;
    struct stage *s;
    struct peer *p;
    uint64_t id;

    opts.max_open = 3;
    s = stage_new(opts);
    p = peer_open(s, FINE);
    sem_init(&let_go, 0, 0);
    rq = to_name("hangs.example", p);
    names[0] = (struct name){"hangs.example", {"127.0.0.1"}, 0};
    hangs = start(s, rq, &whole);
    gone = start(s, rq, &whole);
    UNTIL(s, hanging() == 2);
    told_free(check_error(s, request_to(url_at(p, "/")), OK));
    fetch_cancel(s->fetch, gone->id);
    later(s, 100 * 1000); /* connecting may take no longer */
    CHECK(hangs->n_done && hangs->e == ERR_TIMEOUT && !gone->n_done);
    /* If the loop had waited for the lookups, this would not be reached. */
    CHECK(hanging() == 2 && fetch_stats(s->fetch).lingering == 2);
    /* They count: there is room for one more, and no second. */
    t = start(s, request_to(url_at(p, "/")), &whole);
    CHECK_INT(fetch_start(s->fetch, &rq, &whole, NULL, &id, NULL), ERR_BUSY);
    UNTIL(s, t->n_done);
    told_free(t);
    sem_post(&let_go);
    sem_post(&let_go);
    UNTIL(s, fetch_stats(s->fetch).lingering == 0 && hanging() == 0);
    /* What was found in the end is not connected to. */
    CHECK_INT(p->n_guests, 1);
    told_free(hangs);
    told_free(gone);
    check_alive(s);
    stage_free(s);
}

static void begin_hanging(struct stage *s, struct told **t, int i,
                          const struct peer *p)
{
    char name[32];

    snprintf(name, sizeof(name), "%d.hangs.example", i);
    t[i] = start(s, to_name(name, p), &whole);
}

/* The owner of a name server has many names, and decides how long each lookup
 * takes. */
TEST(look_ups_that_hang_leave_room_for_who_needs_none)
{
    struct fetch_opts opts = test_opts();
    struct told *t[8], *late;
    struct stage *s;
    struct peer *p;

    opts.max_open = 8;
    s = stage_new(opts);
    p = peer_open(s, FINE);
    sem_init(&let_go, 0, 0);
    names[0] = (struct name){"a.example", {"127.0.0.1"}, 0};
    for (int i = 0; i < 4; i++)
        begin_hanging(s, t, i, p);
    UNTIL(s, hanging() == 4);
    late = check_error(s, to_name("a.example", p), ERR_BUSY);
    CHECK(strstr(late->why, "looked up") && !names[0].n_asked);
    told_free(late);
    for (int i = 0; i < 4; i++) {
        fetch_cancel(s->fetch, t[i]->id);
        told_free(t[i]);
    }
    CHECK(fetch_stats(s->fetch).lingering == 4); /* at once */
    for (int i = 0; i < 10; i++)
        told_free(check_error(s, request_to(url_at(p, "/")), OK));
    told_free(check_error(s, to_name("a.example", p), ERR_BUSY));
    for (int i = 0; i < 4; i++)
        sem_post(&let_go);
    UNTIL(s, fetch_stats(s->fetch).lingering == 0);
    told_free(check_error(s, to_name("a.example", p), OK));
    stage_free(s);
}

TEST(one_name_that_hangs_has_its_share_and_no_more)
{
    struct fetch_opts opts = test_opts();
    struct fetch_request rq;
    struct told *t[2];
    struct stage *s;
    struct peer *p;
    struct why why = {""};
    uint64_t id;

    opts.max_open = 8;
    opts.max_per_host = 2;
    s = stage_new(opts);
    p = peer_open(s, FINE);
    sem_init(&let_go, 0, 0);
    rq = to_name("hangs.example", p);
    names[0] = (struct name){"hangs.example", {"127.0.0.1"}, 0};
    for (int i = 0; i < 2; i++)
        t[i] = start(s, rq, &whole);
    UNTIL(s, hanging() == 2);
    for (int i = 0; i < 2; i++) {
        fetch_cancel(s->fetch, t[i]->id);
        told_free(t[i]);
        CHECK_INT(fetch_start(s->fetch, &rq, &whole, NULL, &id, &why),
                  ERR_BUSY);
        CHECK(strstr(why.text, "one host and port"));
    }
    sem_post(&let_go);
    sem_post(&let_go);
    UNTIL(s, fetch_stats(s->fetch).lingering == 0);
    sem_post(&let_go);
    told_free(check_error(s, rq, OK));
    stage_free(s);
}

TEST(stopping_does_not_wait_for_a_look_up)
{
    struct stage *s = stage_new(test_opts());
    struct peer *p = peer_open(s, FINE);
    struct told *gone, *t;

    sem_init(&let_go, 0, 0);
    gone = start(s, to_name("hangs.example", p), &whole);
    t = start(s, to_name("hangs.example", p), &whole);
    UNTIL(s, hanging() == 2);
    fetch_cancel(s->fetch, gone->id);
    turn(s, 3);
    CHECK(fetch_stats(s->fetch).lingering == 1);
    stage_free(s);
    CHECK(t->e == ERR_STOPPING && t->n_done == 1 && hanging() == 2);
    sem_post(&let_go);
    sem_post(&let_go);
    while (hanging())
        sched_yield();
    told_free(t);
    told_free(gone);
}
