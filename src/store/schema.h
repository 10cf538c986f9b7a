/* schema.h - the schema as numbered steps, oldest first. A step is never changed once it has shipped; a new one only adds, so that
 * the version before can still read the store. The texts are the common ground of SQLite and PostgreSQL.
 *
 * Times are milliseconds since 1970, GPUs and CPUs thousandths, memory MiB. Every tenant's row names its project. */
#pragma once

/* A program that knows this many steps can work beside ours on one store, as during a rolling upgrade. Raise it with a step that an
 * older program would break by not knowing it. */
#define SCHEMA_COMPATIBLE_FROM 90

#define SCHEMA_STEPS(X)                                                                                                        \
    X("CREATE TABLE org (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, created_ms BIGINT NOT NULL)")                       \
    X("CREATE TABLE project (id BIGINT PRIMARY KEY, org BIGINT NOT NULL, name TEXT NOT NULL UNIQUE, state BIGINT NOT NULL,"     \
      " quota TEXT NOT NULL, created_ms BIGINT NOT NULL, version BIGINT NOT NULL)")                                            \
    X("CREATE TABLE person (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, password TEXT NOT NULL, roles BIGINT NOT NULL,"   \
      " state BIGINT NOT NULL, created_ms BIGINT NOT NULL, version BIGINT NOT NULL)")                                          \
    X("CREATE TABLE member (project BIGINT NOT NULL, person BIGINT NOT NULL, roles BIGINT NOT NULL, PRIMARY KEY (project, person))") \
    X("CREATE TABLE account (id BIGINT PRIMARY KEY, project BIGINT NOT NULL, name TEXT NOT NULL, roles BIGINT NOT NULL,"        \
      " state BIGINT NOT NULL, created_ms BIGINT NOT NULL, UNIQUE (project, name))")                                           \
    X("CREATE TABLE apikey (id BIGINT PRIMARY KEY, owner_kind BIGINT NOT NULL, owner BIGINT NOT NULL, project BIGINT NOT NULL," \
      " roles BIGINT NOT NULL, name TEXT NOT NULL, hint TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, state BIGINT NOT NULL,"      \
      " created_ms BIGINT NOT NULL, expires_ms BIGINT NOT NULL)")                                                              \
    X("CREATE INDEX apikey_project ON apikey (project, id)")                                                                   \
    X("CREATE TABLE secret (id BIGINT PRIMARY KEY, project BIGINT NOT NULL, name TEXT NOT NULL, sealed TEXT NOT NULL,"          \
      " created_ms BIGINT NOT NULL, updated_ms BIGINT NOT NULL, version BIGINT NOT NULL, UNIQUE (project, name))")             \
    X("CREATE TABLE node (id BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE, state BIGINT NOT NULL, cordoned BIGINT NOT NULL, info TEXT NOT NULL," \
      " kept BIGINT NOT NULL, joined_ms BIGINT NOT NULL, version BIGINT NOT NULL)")                                            \
    X("CREATE TABLE jointoken (id BIGINT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, created_ms BIGINT NOT NULL,"                   \
      " expires_ms BIGINT NOT NULL, used_ms BIGINT NOT NULL, node BIGINT NOT NULL)")                                           \
    X("CREATE TABLE job (id BIGINT PRIMARY KEY, project BIGINT NOT NULL, owner_kind BIGINT NOT NULL, owner BIGINT NOT NULL,"    \
      " name TEXT NOT NULL, state BIGINT NOT NULL, reason BIGINT NOT NULL, outcome BIGINT NOT NULL, priority BIGINT NOT NULL," \
      " count BIGINT NOT NULL, next_task BIGINT NOT NULL, done BIGINT NOT NULL, failed BIGINT NOT NULL,"                       \
      " cancelled BIGINT NOT NULL, exit_code BIGINT NOT NULL, spec TEXT NOT NULL, flavor TEXT NOT NULL, idem TEXT,"            \
      " created_ms BIGINT NOT NULL, started_ms BIGINT NOT NULL, ended_ms BIGINT NOT NULL, version BIGINT NOT NULL)")           \
    X("CREATE INDEX job_project ON job (project, id)")                                                                         \
    X("CREATE INDEX job_live ON job (id) WHERE state < 4")                                                                     \
    X("CREATE INDEX job_idem ON job (created_ms) WHERE idem IS NOT NULL")                                                      \
    X("CREATE TABLE task (job BIGINT NOT NULL, task BIGINT NOT NULL, project BIGINT NOT NULL, state BIGINT NOT NULL,"           \
      " outcome BIGINT NOT NULL, tries BIGINT NOT NULL, faults BIGINT NOT NULL, attempt BIGINT NOT NULL, exit_code BIGINT NOT NULL," \
      " signal BIGINT NOT NULL, detail TEXT NOT NULL, not_before_ms BIGINT NOT NULL, started_ms BIGINT NOT NULL,"              \
      " ended_ms BIGINT NOT NULL, PRIMARY KEY (job, task))")                                                                   \
    X("CREATE INDEX task_live ON task (job, task) WHERE state < 4")                                                                  \
    X("CREATE TABLE attempt (id BIGINT PRIMARY KEY, job BIGINT NOT NULL, task BIGINT NOT NULL, project BIGINT NOT NULL,"        \
      " node BIGINT NOT NULL, state BIGINT NOT NULL, outcome BIGINT NOT NULL, lease TEXT NOT NULL, run_for_s BIGINT NOT NULL," \
      " placed_ms BIGINT NOT NULL, started_ms BIGINT NOT NULL, ended_ms BIGINT NOT NULL, exit_code BIGINT NOT NULL,"           \
      " signal BIGINT NOT NULL, detail TEXT NOT NULL)")                                                                        \
    X("CREATE INDEX attempt_job ON attempt (job, task, id)")                                                                   \
    X("CREATE INDEX attempt_live ON attempt (id) WHERE state < 4")                                                             \
    X("CREATE TABLE usage (attempt BIGINT PRIMARY KEY, project BIGINT NOT NULL, owner_kind BIGINT NOT NULL, owner BIGINT NOT NULL," \
      " job BIGINT NOT NULL, node BIGINT NOT NULL, flavor TEXT NOT NULL, gpu_milli BIGINT NOT NULL, gpu_mib BIGINT NOT NULL,"  \
      " cpu_milli BIGINT NOT NULL, mem_mib BIGINT NOT NULL, started_ms BIGINT NOT NULL, ended_ms BIGINT NOT NULL,"             \
      " billable BIGINT NOT NULL, simulated BIGINT NOT NULL)")                                                                 \
    X("CREATE INDEX usage_project ON usage (project, ended_ms)")                                                               \
    X("CREATE TABLE volume (id BIGINT PRIMARY KEY, project BIGINT NOT NULL, name TEXT NOT NULL, node BIGINT NOT NULL,"          \
      " created_ms BIGINT NOT NULL, version BIGINT NOT NULL, UNIQUE (project, name))")                                         \
    X("CREATE TABLE image (id BIGINT PRIMARY KEY, project BIGINT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL,"           \
      " format TEXT NOT NULL, size BIGINT NOT NULL, created_ms BIGINT NOT NULL, UNIQUE (project, name))")                      \
    X("CREATE TABLE blob (project BIGINT NOT NULL, digest TEXT NOT NULL, size BIGINT NOT NULL, created_ms BIGINT NOT NULL,"     \
      " PRIMARY KEY (project, digest))")                                                                                       \
    X("CREATE TABLE event (seq BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, project BIGINT NOT NULL, kind TEXT NOT NULL,"         \
      " subject TEXT NOT NULL, actor TEXT NOT NULL, actor_id BIGINT NOT NULL, apikey BIGINT NOT NULL, address TEXT NOT NULL,"  \
      " request TEXT NOT NULL, idem TEXT, data TEXT NOT NULL)")                                                                \
    X("CREATE INDEX event_project ON event (project, seq)")                                                                    \
    X("CREATE INDEX event_idem ON event (at_ms) WHERE idem IS NOT NULL")                                                       \
    X("ALTER TABLE attempt ADD COLUMN grace_s BIGINT NOT NULL DEFAULT -1") \
    X("CREATE TABLE goner (volume BIGINT PRIMARY KEY, node BIGINT NOT NULL)") /* removed volumes whose node has not swept them yet */ \
    X("CREATE TABLE restored (at_ms BIGINT PRIMARY KEY)") /* a row: it came from a backup, and nothing is placed yet */ \
    /* several head nodes: who writes (one row), who serves, what all of them must agree on, and blobs where a file of one server would be lost with it */ \
    X("CREATE TABLE writer (one BIGINT PRIMARY KEY, epoch BIGINT NOT NULL, pid BIGINT NOT NULL, since BIGINT NOT NULL,"         \
      " server BIGINT NOT NULL, address TEXT NOT NULL, renewed BIGINT NOT NULL)")                                              \
    X("INSERT INTO writer (one, epoch, pid, since, server, address, renewed) VALUES (1, 0, 0, 0, 0, '', 0)")                   \
    X("CREATE TABLE server (id BIGINT PRIMARY KEY, address TEXT NOT NULL, version TEXT NOT NULL, seen_ms BIGINT NOT NULL)")    \
    X("CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL)")                                                     \
    X("CREATE TABLE blob_part (project BIGINT NOT NULL, digest TEXT NOT NULL, n BIGINT NOT NULL, at_ms BIGINT NOT NULL, bytes BYTEA NOT NULL," \
      " PRIMARY KEY (project, digest, n))") \
    X("ALTER TABLE node ADD COLUMN rotate_ms BIGINT NOT NULL DEFAULT 0") /* a key made before is to be replaced */ \
    /* The audit chain: an act's number and hash are in its event's row; what left no event has a row of its own. */           \
    X("ALTER TABLE event ADD COLUMN audit BIGINT")                                                                             \
    X("ALTER TABLE event ADD COLUMN verb TEXT")                                                                                \
    X("ALTER TABLE event ADD COLUMN chain TEXT")                                                                               \
    X("CREATE UNIQUE INDEX event_audit ON event (audit) WHERE audit IS NOT NULL")                                              \
    X("CREATE TABLE audit_note (number BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, project BIGINT NOT NULL, verb TEXT NOT NULL," \
      " subject TEXT NOT NULL, actor TEXT NOT NULL, actor_id BIGINT NOT NULL, apikey BIGINT NOT NULL, address TEXT NOT NULL,"  \
      " request TEXT NOT NULL, result TEXT NOT NULL, times BIGINT NOT NULL, chain TEXT NOT NULL)")                             \
    X("CREATE INDEX audit_note_project ON audit_note (project, number)")                                                       \
    X("CREATE TABLE audit_head (id BIGINT PRIMARY KEY, number BIGINT NOT NULL, chain TEXT NOT NULL, mac TEXT NOT NULL)") /* where the chain ends: one row */ \
    /* Rows that are never dropped, moved out of the way: JSON lines, oldest first. */                                         \
    X("CREATE TABLE archive (kind TEXT NOT NULL, segment BIGINT NOT NULL, first BIGINT NOT NULL, last BIGINT NOT NULL,"          \
      " from_ms BIGINT NOT NULL, to_ms BIGINT NOT NULL, entries BIGINT NOT NULL, chain TEXT NOT NULL, lines TEXT NOT NULL,"    \
      " PRIMARY KEY (kind, segment))")                                                                                         \
    X("CREATE INDEX archive_last ON archive (kind, last)") \
    /* Sums of each day, made with the rows they sum up: so a bill does not read every attempt. rolled: is the row in them? */ \
    X("CREATE TABLE usage_day (day BIGINT NOT NULL, project BIGINT NOT NULL, owner_kind BIGINT NOT NULL, owner BIGINT NOT NULL," \
      " flavor TEXT NOT NULL, simulated BIGINT NOT NULL, attempts BIGINT NOT NULL, ms BIGINT NOT NULL, gpu_milli_ms BIGINT NOT NULL," \
      " gpu_mib_ms BIGINT NOT NULL, cpu_milli_ms BIGINT NOT NULL, mem_mib_ms BIGINT NOT NULL, longest_ms BIGINT NOT NULL,"                                 \
      " PRIMARY KEY (day, project, owner_kind, owner, flavor, simulated))")                                                    \
    X("ALTER TABLE usage ADD COLUMN rolled BIGINT NOT NULL DEFAULT 0")                                                         \
    X("CREATE INDEX usage_unrolled ON usage (attempt) WHERE rolled = 0")                                                       \
    X("CREATE INDEX usage_ended ON usage (ended_ms, attempt)")                                                                 \
    /* What has ended is found by when, by state and by name; live jobs have job_live, so that a submit pays for none of these. */ \
    /* (Their condition is not state >= 4: SQLite takes that for the better range, and the wrong index.) */                    \
    X("CREATE INDEX job_ended ON job (ended_ms) WHERE ended_ms > 0")                                                             \
    X("CREATE INDEX job_ended_state ON job (project, state, id) WHERE ended_ms > 0")                                             \
    X("CREATE INDEX job_ended_name ON job (project, name, id) WHERE ended_ms > 0")                                               \
    X("CREATE INDEX attempt_newest ON attempt (job, id)")                                                                      \
    X("CREATE INDEX apikey_owner ON apikey (owner_kind, owner, id)") \
    X("CREATE TABLE audit_inbox (id BIGINT PRIMARY KEY, note TEXT NOT NULL)") /* what a server that does not write has to say for the audit */ \
    X("ALTER TABLE writer ADD COLUMN counted BIGINT NOT NULL DEFAULT 0") /* the last epoch whose holder moves `renewed` with every commit */ \
    /* Idempotency-Keys are found by a slot: their day and a hash. What has none was written by an older program. */                \
    X("ALTER TABLE job ADD COLUMN idem_slot BIGINT")                                                                           \
    X("ALTER TABLE event ADD COLUMN idem_slot BIGINT")                                                                         \
    X("CREATE INDEX job_idem_slot ON job (idem_slot, created_ms, id) WHERE idem IS NOT NULL")                                  \
    X("CREATE INDEX event_idem_slot ON event (idem_slot, at_ms, seq) WHERE idem IS NOT NULL") \
    X("ALTER TABLE blob ADD COLUMN used_ms BIGINT NOT NULL DEFAULT 0") /* uploaded again, or named by a job or an image: what nobody uses goes as old jobs do */ \
    X("CREATE INDEX blob_used ON blob (used_ms)") \
    /* Who may have how much: a project's weight, limits of it, its users and one model; and which of them holds a job. */      \
    X("ALTER TABLE project ADD COLUMN weight BIGINT NOT NULL DEFAULT 1000")                                                    \
    X("CREATE TABLE quota_limit (project BIGINT NOT NULL, owner BIGINT NOT NULL, model TEXT NOT NULL, tasks BIGINT NOT NULL,"    \
      " gpu_milli BIGINT NOT NULL, day_milli BIGINT NOT NULL, week_milli BIGINT NOT NULL, month_milli BIGINT NOT NULL,"        \
      " PRIMARY KEY (project, owner, model))")                                                                                 \
    X("ALTER TABLE job ADD COLUMN why TEXT NOT NULL DEFAULT ''") \
    /* Nodes that are emptied, and attempts that were told to end for a reason of ours (0: none; as which outcome). */            \
    X("ALTER TABLE node ADD COLUMN drain BIGINT NOT NULL DEFAULT 0")                                                           \
    X("ALTER TABLE node ADD COLUMN drain_until_ms BIGINT NOT NULL DEFAULT 0")                                                  \
    X("ALTER TABLE attempt ADD COLUMN stop_as BIGINT NOT NULL DEFAULT 0") \
    /* What an operator set for the whole cloud; and nodes that were given up, as those are that were down before anybody kept that. */ \
    X("CREATE TABLE rule (name TEXT PRIMARY KEY, value BIGINT NOT NULL)")                                                      \
    X("ALTER TABLE node ADD COLUMN lost BIGINT NOT NULL DEFAULT 0")                                                            \
    X("UPDATE node SET lost = 1 WHERE state = 2") \
    X("ALTER TABLE node ADD COLUMN settings TEXT NOT NULL DEFAULT '{}'") /* what the operator says of it: struct node_settings */ \
    /* Evictions: when an attempt was told to end, how often a task had to yield, and what the brake counts. */                  \
    X("ALTER TABLE attempt ADD COLUMN stop_ms BIGINT NOT NULL DEFAULT 0")                                                      \
    X("ALTER TABLE task ADD COLUMN evictions BIGINT NOT NULL DEFAULT 0")                                                       \
    X("CREATE TABLE evicted (attempt BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, gpu_milli BIGINT NOT NULL)") \
    X("ALTER TABLE project ADD COLUMN residency TEXT NOT NULL DEFAULT ''") /* where its tasks may run, with commas; empty: anywhere */ \
    /* Capacity promised to a project for a time; ended_ms: it is over, or was removed. */                                        \
    X("CREATE TABLE reservation (id BIGINT PRIMARY KEY, project BIGINT NOT NULL, name TEXT NOT NULL, gpus TEXT NOT NULL, count BIGINT NOT NULL," \
      " from_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL, ended_ms BIGINT NOT NULL, created_ms BIGINT NOT NULL)")              \
    X("CREATE INDEX reservation_live ON reservation (id) WHERE ended_ms = 0")                                                  \
    X("CREATE INDEX reservation_project ON reservation (project, id)")                                                         \
    X("CREATE INDEX reservation_name ON reservation (name, id)") \
    /* Live jobs of a project are found without walking those of others; all of a project are these and what job_ended_state has. */ \
    X("CREATE INDEX job_live_project ON job (project, id) WHERE state < 4")                                                    \
    X("DROP INDEX job_project") \
    /* A project's network: its number (0: none yet), where its tasks may go, and the Mbit/s of one task each way (0: not capped). */ \
    X("ALTER TABLE project ADD COLUMN net BIGINT NOT NULL DEFAULT 0")                                                          \
    X("ALTER TABLE project ADD COLUMN egress TEXT NOT NULL DEFAULT 'all'")                                                     \
    X("ALTER TABLE project ADD COLUMN mbit BIGINT NOT NULL DEFAULT 0") \
    X("ALTER TABLE reservation ADD COLUMN begun BIGINT NOT NULL DEFAULT 0") /* 1: it was told that its time has come */ \
    /* An attempt that changed what it holds has several intervals: all but the last have a number of their own, and this is whose they are; 0: its own. */ \
    X("ALTER TABLE usage ADD COLUMN part_of BIGINT NOT NULL DEFAULT 0") \
    /* Public keys of people's profiles. One that was removed is remembered, so that it does not come in when it is brought along either. */ \
    X("CREATE TABLE ssh_key (id BIGINT PRIMARY KEY, owner_kind BIGINT NOT NULL, owner BIGINT NOT NULL, name TEXT NOT NULL, bare TEXT NOT NULL," \
      " comment TEXT NOT NULL, created_ms BIGINT NOT NULL, removed_ms BIGINT NOT NULL)")                                       \
    X("CREATE INDEX ssh_key_owner ON ssh_key (owner_kind, owner, id)") \
    X("ALTER TABLE volume ADD COLUMN job BIGINT NOT NULL DEFAULT 0") /* it is the disk of this instance, and nobody else's to name; 0: a volume proper */ \
    /* How often a task may have been the one that made a GPU fail which it shared. */ \
    X("ALTER TABLE task ADD COLUMN suspicions BIGINT NOT NULL DEFAULT 0") \
    X("ALTER TABLE task ADD COLUMN suspected_ms BIGINT NOT NULL DEFAULT 0") /* the last time: it is forgiven after a day */ \
    X("ALTER TABLE job ADD COLUMN ready_ms BIGINT NOT NULL DEFAULT 0") /* since then it may run: it was started again, or what it came after had ended; 0: since it was made */
