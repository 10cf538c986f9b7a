/* http_hello.c - the smallest server there can be, to hold net/ and os/ against nginx with wrk. Prints its address. */
#include "net/http.h"
#include <signal.h>
#include <stdio.h>

static void on_request(void *arg, struct http_request *rq)
{
    (void)arg;
    http_reply(rq, 200, "application/json", NULL, 0, SLICE("{\"hello\":\"world\",\"from\":\"a small reply\"}"));
}

static void stop(void *arg) { os_stop(arg); }

int main(int argc, char **argv)
{
    static const struct http_handler handler = { .on_request = on_request };
    struct err err = { 0 };
    struct os *os = os_real_new(&err);
    struct http_server *s = NULL;
    if (!os || !http_listen(os, argc > 1 ? argv[1] : "127.0.0.1:0", NULL, NULL, &handler, NULL, &s, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    os_on_signal(os, SIGTERM, stop, os);
    printf("%s\n", http_address(s));
    fflush(stdout);
    os_run(os);
    return 0;
}
