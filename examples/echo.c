/* An agent that says what it hears. client/README.md tells the rest. */
#include <signalbox_client.h>
#include <stdio.h>

static void echo(void *ctx, struct sbc_task *t)
{
    (void)ctx;
    sbc_chunk(t, t->text);
}

int main(void)
{
    const char *card = "{\"name\":\"parrot\",\"description\":\"Echoes\"}";
    struct sbc *s = sbc_open(NULL, NULL); /* SIGNALBOX_URL, SIGNALBOX_TOKEN */

    if (!s || sbc_register(s, card, echo, NULL) || sbc_run(s))
        fprintf(stderr, "%s\n", s ? sbc_why(s) : "no SIGNALBOX_URL");
    sbc_close(s);
}
