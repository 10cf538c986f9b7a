/* sim.h - machines that do not exist: virtual time, a network and disks that fail on purpose, all from one seed.
 *
 * sim_step() runs the next thing that is due anywhere and moves the clock to it. A crash drops a machine's loop, timers,
 * streams, processes and every byte that was not synced; its disk stays for the machine started in its place.
 *
 * Code whose machine is dead is never called again, and what it calls does nothing or fails: the objects it holds stay
 * addressable until sim_free. So a test may free the memory of that code in any way it likes; nobody else does. */
#pragma once
#include "os/os.h"

struct sim;
struct sim *sim_new(uint64_t seed);
void sim_free(struct sim *w);
AUTO_FN(struct sim *, sim_free)
struct os *sim_machine(struct sim *w, const char *host);        /* the same host after a crash finds its disk again */
void sim_crash(struct sim *w, struct os *machine);              /* machine is dead from here on; peers see resets */
void sim_partition(struct sim *w, const char *a, const char *b, bool cut);   /* bytes between them wait, new dials fail */
void sim_partition_way(struct sim *w, const char *from, const char *to, bool cut);  /* one way only; a dial needs both */
void sim_network(struct sim *w, int64_t delay_min_ms, int64_t delay_max_ms);
/* Of a thousand pieces so many are lost and come late, as TCP sends them again; and so many take their connection with them. */
void sim_loss(struct sim *w, unsigned lost_milli, unsigned reset_milli);
void sim_reset_nth(struct sim *w, int nth);                      /* the nth piece from now takes its connection with it; 0: none */
bool sim_reset_waits(const struct sim *w);                      /* it has not come yet */
/* fn hears every piece of bytes as it arrives at another host. */
void sim_listen_in(struct sim *w, void (*fn)(void *arg, const char *from, const char *to, const char *at, size_t n), void *arg);
void sim_stall(struct sim *w, struct os *os, int64_t ms);       /* this process or machine stands still (SIGSTOP); its clocks and its peers go on */
void sim_mount(struct sim *w, const char *host, const char *folder, const char *of);   /* that folder of `host` is on the disk of `of`, over the network */
void *sim_memory(struct os *os, const char *name, size_t n, bool make);     /* zeroed; processes that name it share it, also over a mount; a crash of its host takes it. NULL: there is none */
void sim_disk_slow(struct sim *w, const char *host, int64_t sync_ms_most);  /* a sync takes up to so long, and who asked for it stands still; 0: no time */
void sim_disk_full(struct sim *w, const char *host, bool full); /* no file can grow */
bool sim_step(struct sim *w);                                   /* false: nothing is left to happen */
bool sim_until(struct sim *w, int64_t boot_ms, bool (*enough)(void *arg), void *arg);  /* true: enough() held before sim_now_ms() was boot_ms; NULL: just goes there */
uint64_t sim_trace(const struct sim *w);                        /* of all that has happened: two equal runs have the same */
int64_t sim_now_ms(const struct sim *w);
int64_t sim_steps(const struct sim *w);                         /* how many things have happened */
void sim_wall_jump(struct sim *w, int64_t ms);                  /* every wall clock, ahead or back; the boot clock goes on */
uint64_t sim_chance(struct sim *w, uint64_t below);
/* A program that proc_spawn finds under argv[0] on every simulated machine. A process has an os of its own on its machine, which
 * dies with it: its timers stop and its streams end, the disk stays as it is. proc_run calls start and wants the end at once. */
struct sim_proc;                                                /* what a running one is */
void sim_program(struct sim *w, const char *path, void (*start)(void *arg, struct os *os, struct sim_proc *self, const char *const *argv), void *arg);
void sim_proc_exit(struct sim_proc *p, int wait_status);
void sim_proc_print(struct sim_proc *p, const char *text);      /* what proc_run gives */
/* Without it a signal ends the process. SIGKILL ends it in any case; fn is called then to free what the process held. */
void sim_proc_on_signal(struct sim_proc *p, void (*fn)(void *arg, int signal), void *arg);
int sim_proc_pid(const struct sim_proc *p);
uint64_t sim_proc_start_time(const struct sim_proc *p);          /* what proc_watch asks for */
