#include "choose/route.h"

#include "test/t.h"

static struct part parts[PARTS_MAX];

static struct str first_of(const char *text)
{
    CHECK(parts_find(str_of(text), parts) > 0);
    return parts[0].text;
}

TEST(the_line_below_a_log_that_asks_is_the_first_part)
{
    CHECK_STR(first_of("May 14 02:11:08 host kubelet[1123]: W0514 evict 3\n"
                       "May 14 02:11:09 host kubelet[1123]: I0514 done 4\n"
                       "\n"
                       "why does this node keep evicting things?\n"),
              "why does this node keep evicting things?");
}

TEST(the_line_between_two_blocks_that_asks_is_the_first_part)
{
    CHECK_STR(first_of("Minutes of the meeting\n\n"
                       "1. The new table works well for everyone.\n"
                       "   -> please work out who covers the nights\n"
                       "2. The open day was a success.\n\n"
                       "Next meeting on the first of July."),
              "-> please work out who covers the nights");
}

TEST(greetings_headers_and_signatures_come_behind_the_request)
{
    CHECK_STR(first_of("From: Ana\nSubject: could you please read this\n\n"
                       "Dear all, it was nice to see you.\n\n"
                       "Could you send the papers to them?\n\n"
                       "Kind regards to all of you"),
              "Could you send the papers to them?");
}

TEST(a_long_line_is_cut_at_its_sentences)
{
    char line[2000];
    int n = 0;

    for (int i = 0; i < 12; i++)
        n += snprintf(line + n, sizeof(line) - (size_t)n,
                      "This sentence says something about the weather. ");
    snprintf(line + n, sizeof(line) - (size_t)n,
             "Can you book a table for four?");
    parts_find(str_of(line), parts);
    CHECK(parts[0].text.n <= PART_BYTES);
    CHECK(strstr(parts[0].text.p, "Can you book a table for four?"));
    CHECK(parts[0].points > parts[1].points);
}

TEST(a_request_at_the_end_of_a_mebibyte_is_found)
{
    size_t n = 1 << 20;
    char *text = malloc(n + 64);
    static const char request[] = "\n\nplease find out what happened here";

    CHECK(text);
    for (size_t i = 0; i < n; i += 16)
        memcpy(text + i, "12:00:01 ok=1;x\n", 16);
    memcpy(text + n, request, sizeof(request));
    CHECK(parts_find((struct str){text, n + sizeof(request) - 1}, parts) > 0);
    CHECK_STR(parts[0].text, "please find out what happened here");
    free(text);
}

TEST(there_are_never_more_parts_than_the_limit)
{
    struct buf text;

    for (int n = PARTS_MAX; n <= PARTS_MAX + 1; n++) {
        buf_init(&text, 64 * 1024);
        for (int i = 0; i < n; i++)
            buf_addf(&text, "this is a line of words\n");
        CHECK_INT(parts_find(buf_str(&text), parts), PARTS_MAX);
        buf_fini(&text);
    }
}

TEST(no_part_is_longer_than_the_limit_whatever_the_text)
{
    size_t n = 1 << 20;
    char *junk = malloc(n);
    uint64_t x = 3;

    CHECK(junk);
    for (int kind = 0; kind < 3; kind++) {
        size_t found;

        for (size_t i = 0; i < n; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            junk[i] = kind == 0   ? (char)(x >> 56)
                      : kind == 1 ? 'A'
                                  : "\xe8\xaf\xb7"[i % 3];
        }
        found = parts_find((struct str){junk, n}, parts);
        for (size_t i = 0; i < found; i++)
            CHECK(parts[i].text.n && parts[i].text.n <= PART_BYTES);
    }
    free(junk);
}

TEST(an_empty_text_has_no_parts)
{
    CHECK_INT(parts_find(STR(""), parts), 0);
    CHECK_INT(parts_find(STR(" \n\t\n"), parts), 0);
}

TEST(a_request_in_another_language_is_found_by_its_question_mark)
{
    CHECK_STR(first_of("Notizen vom Montag\n\n"
                       "Die Kantine ist wieder offen und alle sind froh\n\n"
                       "Wann kommt die neue Maschine in die Halle?\n\n"
                       "Bis bald, und viele liebe Wünsche"),
              "Wann kommt die neue Maschine in die Halle?");
    CHECK_STR(first_of("会议记录，今天大家都来了，讨论得很好\n\n"
                       "请帮我预订明天去上海的航班\n\n"
                       "食堂重新开放了，大家都很高兴"),
              "请帮我预订明天去上海的航班");
}
