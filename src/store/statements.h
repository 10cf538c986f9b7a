/* statements.h - every statement the server can ever send to its database.
 *
 * X(NAME, "types of its arguments", "text"): i integer, t text, b blob. All of them are prepared when a connection opens, so a misspelt
 * column stops the server at start. The text is the common ground of SQLite and PostgreSQL; postgres.c turns ?1 into
 * $1 and nothing else. Names: NOUN_WHAT. Writes come from the writer alone. */
#pragma once

/* A job with what a listing shows beside it. */
#define JOB_COLUMNS                                                                                                            \
    "id, project, owner_kind, owner, name, state, reason, outcome, priority, count, next_task, done, failed, cancelled, exit_code, spec, flavor, created_ms, started_ms, ended_ms, version," \
    " (SELECT p.name FROM project p WHERE p.id = job.project),"                                                                \
    " COALESCE((SELECT u.name FROM person u WHERE u.id = job.owner), (SELECT a.name FROM account a WHERE a.id = job.owner), '')," \
    " COALESCE((SELECT n.name FROM attempt a JOIN node n ON n.id = a.node WHERE a.job = job.id ORDER BY a.id DESC LIMIT 1), '')," \
    " CAST(COALESCE((SELECT CASE WHEN a.lease LIKE '%\"simulated\":true%' THEN 1 ELSE 0 END FROM attempt a WHERE a.job = job.id ORDER BY a.id DESC LIMIT 1), 0) AS BIGINT)," \
    " (SELECT COUNT(*) FROM task t WHERE t.job = job.id AND t.state < 4 AND t.state > 1)"

/* What an attempt used, with the names that a sum shows. */
#define USAGE_COLUMNS                                                                                                          \
    "SELECT u.attempt, u.project, u.owner_kind, u.owner, u.flavor, u.gpu_milli, u.gpu_mib, u.cpu_milli, u.mem_mib, u.started_ms, u.ended_ms, u.billable, u.simulated," \
    " COALESCE(p.name, ''), COALESCE(o.name, a.name, '') FROM usage u LEFT JOIN project p ON p.id = u.project LEFT JOIN person o ON o.id = u.owner LEFT JOIN account a ON a.id = u.owner "

/* A row of the audit chain: of an event, of a note. */
#define AUDIT_EVENT "SELECT audit AS number, seq, at_ms, project, verb, kind, subject, actor, actor_id, apikey, address, request, 'ok' AS result, CAST(1 AS BIGINT) AS times, idem, data, chain FROM event "
#define AUDIT_NOTE  "SELECT number, CAST(0 AS BIGINT), at_ms, project, verb, '', subject, actor, actor_id, apikey, address, request, result, times, NULL, '', chain FROM audit_note "

/* What was asked with an Idempotency-Key: of a job, of an event. */
#define IDEM_JOB   "SELECT CAST(1 AS BIGINT) AS kind, id, project, owner, idem, '' AS data, created_ms FROM job WHERE idem IS NOT NULL AND "
#define IDEM_EVENT "SELECT CAST(2 AS BIGINT) AS kind, seq, project, actor_id, idem, data, at_ms FROM event WHERE idem IS NOT NULL AND "

/* A row of a trace: what held something, from when to when, with what its job asked for as long as that is kept. */
#define TRACE_JOB \
    " COALESCE(j.name, ''), COALESCE(j.priority, 50), COALESCE(j.created_ms, 0), COALESCE(CASE WHEN LENGTH(j.spec) < 65536 THEN j.spec ELSE '' END, ''), COALESCE(p.name, '')," \
    " CAST(CASE WHEN EXISTS (SELECT 1 FROM attempt b WHERE b.job = a.job AND b.task = a.task AND b.id < a.id) THEN 1 ELSE 0 END AS BIGINT) "
#define TRACE_USAGE \
    "SELECT u.attempt, u.project, u.flavor, u.gpu_milli, u.cpu_milli, u.mem_mib, COALESCE(a.placed_ms, u.started_ms), u.ended_ms," TRACE_JOB \
    "FROM usage u LEFT JOIN attempt a ON a.id = u.attempt LEFT JOIN job j ON j.id = u.job LEFT JOIN project p ON p.id = u.project "

#define STATEMENTS(X)                                                                                                          \
    /* --- writes */                                                                                                           \
    X(ORG_ADD, "iti", "INSERT INTO org (id, name, created_ms) VALUES (?1, ?2, ?3)")                                            \
    X(PROJECT_ADD, "iititi", "INSERT INTO project (id, org, name, state, quota, created_ms, version) VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1)") \
    X(PROJECT_SET, "iiti", "UPDATE project SET state = ?2, quota = ?3, version = ?4 WHERE id = ?1")                            \
    X(PERSON_ADD, "ittii", "INSERT INTO person (id, name, password, roles, state, created_ms, version) VALUES (?1, ?2, ?3, ?4, 0, ?5, 1)") \
    X(PERSON_SET, "itiii", "UPDATE person SET password = ?2, roles = ?3, state = ?4, version = ?5 WHERE id = ?1")              \
    X(PROJECT_WEIGHT, "ii", "UPDATE project SET weight = ?2 WHERE id = ?1")                                                     \
    X(PROJECT_RESIDENCY, "it", "UPDATE project SET residency = ?2 WHERE id = ?1")                                               \
    X(PROJECT_NET, "ii", "UPDATE project SET net = ?2 WHERE id = ?1")                                                           \
    X(PROJECT_EGRESS, "iti", "UPDATE project SET egress = ?2, mbit = ?3 WHERE id = ?1")                                         \
    X(LIMIT_SET, "iitiiiii", "INSERT INTO quota_limit (project, owner, model, tasks, gpu_milli, day_milli, week_milli, month_milli) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (project, owner, model) DO UPDATE SET tasks = ?4, gpu_milli = ?5, day_milli = ?6, week_milli = ?7, month_milli = ?8") \
    X(LIMIT_DROP, "iit", "DELETE FROM quota_limit WHERE project = ?1 AND owner = ?2 AND model = ?3")                            \
    X(JOB_WHY, "it", "UPDATE job SET why = ?2 WHERE id = ?1")                                                                  \
    X(MEMBER_SET, "iii", "INSERT INTO member (project, person, roles) VALUES (?1, ?2, ?3) ON CONFLICT (project, person) DO UPDATE SET roles = ?3") \
    X(MEMBER_DROP, "ii", "DELETE FROM member WHERE project = ?1 AND person = ?2")                                              \
    X(ACCOUNT_ADD, "iitii", "INSERT INTO account (id, project, name, roles, state, created_ms) VALUES (?1, ?2, ?3, ?4, 0, ?5)") \
    X(ACCOUNT_STATE, "ii", "UPDATE account SET state = ?2 WHERE id = ?1")                                                      \
    X(KEY_ADD, "iiiiitttii", "INSERT INTO apikey (id, owner_kind, owner, project, roles, name, hint, hash, state, created_ms, expires_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9, ?10)") \
    X(KEY_STATE, "ii", "UPDATE apikey SET state = ?2 WHERE id = ?1")                                                           \
    X(SSH_KEY_ADD, "iiittti", "INSERT INTO ssh_key (id, owner_kind, owner, name, bare, comment, created_ms, removed_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0)") \
    X(SSH_KEY_BACK, "itti", "UPDATE ssh_key SET name = ?2, comment = ?3, created_ms = ?4, removed_ms = 0 WHERE id = ?1")         \
    X(SSH_KEY_REMOVE, "iiti", "UPDATE ssh_key SET removed_ms = ?4 WHERE owner_kind = ?1 AND owner = ?2 AND bare = ?3 AND removed_ms = 0") \
    X(SSH_KEY_FORGET, "i", "DELETE FROM ssh_key WHERE id = ?1")                                                                \
    X(SECRET_ADD, "iitti", "INSERT INTO secret (id, project, name, sealed, created_ms, updated_ms, version) VALUES (?1, ?2, ?3, ?4, ?5, ?5, 1)") \
    X(SECRET_SET, "itii", "UPDATE secret SET sealed = ?2, updated_ms = ?3, version = ?4 WHERE id = ?1")                        \
    X(SECRET_DROP, "i", "DELETE FROM secret WHERE id = ?1")                                                                    \
    X(NODE_ADD, "itti", "INSERT INTO node (id, name, state, cordoned, info, kept, joined_ms, version) VALUES (?1, ?2, 2, 0, ?3, 0, ?4, 1)")  \
    X(NODE_SET, "iiitiit", "UPDATE node SET state = ?2, cordoned = ?3, info = ?4, kept = ?5, version = ?6, settings = ?7 WHERE id = ?1") \
    X(NODE_ROTATE, "iii", "UPDATE node SET rotate_ms = ?2, version = ?3 WHERE id = ?1")                                       \
    X(NODE_DRAIN, "iii", "UPDATE node SET drain = ?2, drain_until_ms = ?3 WHERE id = ?1")                                       \
    X(NODE_LOST, "ii", "UPDATE node SET lost = ?2 WHERE id = ?1")                                                              \
    X(RULE_SET, "ti", "INSERT INTO rule (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2")             \
    X(NODE_KEPT, "ii", "UPDATE node SET kept = ?2 WHERE id = ?1")                                                              \
    X(NODE_DROP, "i", "DELETE FROM node WHERE id = ?1")                                                                        \
    X(TOKEN_ADD, "itii", "INSERT INTO jointoken (id, hash, created_ms, expires_ms, used_ms, node) VALUES (?1, ?2, ?3, ?4, 0, 0)") \
    X(TOKEN_USE, "iii", "UPDATE jointoken SET used_ms = ?2, node = ?3 WHERE id = ?1")                                          \
    X(TOKEN_DROP, "i", "DELETE FROM jointoken WHERE id = ?1")                                                                  \
    X(JOB_ADD, "iiiitiiiitttii", "INSERT INTO job (id, project, owner_kind, owner, name, state, reason, outcome, priority, count, next_task, done, failed, cancelled, exit_code, spec, flavor, idem, created_ms, started_ms, ended_ms, version, idem_slot) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, 0, 0, 0, 0, 0, ?10, ?11, ?12, ?13, 0, 0, 1, ?14)") \
    X(JOB_SET, "iiiiiiiiiiiiii", "UPDATE job SET state = ?2, reason = ?3, outcome = ?4, priority = ?5, next_task = ?6, done = ?7, failed = ?8, cancelled = ?9, exit_code = ?10, started_ms = ?11, ended_ms = ?12, version = ?13 WHERE id = ?1 AND project = ?14") \
    X(JOB_READY, "iii", "UPDATE job SET ready_ms = ?2 WHERE id = ?1 AND project = ?3") \
    X(TASK_ADD, "iiiiiii", "INSERT INTO task (job, task, project, state, outcome, tries, faults, attempt, exit_code, signal, detail, not_before_ms, started_ms, ended_ms) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6, ?7, 0, 0, '', 0, 0, 0)") \
    X(TASK_SET, "iiiiiiiiitiiiiii", "UPDATE task SET state = ?3, outcome = ?4, tries = ?5, faults = ?6, attempt = ?7, exit_code = ?8, signal = ?9, detail = ?10, not_before_ms = ?11, started_ms = ?12, ended_ms = ?13, evictions = ?14, suspicions = ?15, suspected_ms = ?16 WHERE job = ?1 AND task = ?2") \
    X(ATTEMPT_ADD, "iiiiitii", "INSERT INTO attempt (id, job, task, project, node, state, outcome, lease, run_for_s, placed_ms, started_ms, ended_ms, exit_code, signal, detail) VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, ?6, ?7, ?8, 0, 0, 0, 0, '')") \
    X(ATTEMPT_SET, "iiiiiiit", "UPDATE attempt SET state = ?2, outcome = ?3, started_ms = ?4, ended_ms = ?5, exit_code = ?6, signal = ?7, detail = ?8 WHERE id = ?1") \
    X(ATTEMPT_LEASE, "it", "UPDATE attempt SET lease = ?2 WHERE id = ?1")                                                       \
    X(ATTEMPT_STOP, "iiiii", "UPDATE attempt SET state = ?2, started_ms = ?3, grace_s = ?4, stop_ms = ?5 WHERE id = ?1") \
    X(ATTEMPT_YIELD, "iiiti", "UPDATE attempt SET stop_as = ?2, grace_s = ?3, detail = ?4, stop_ms = ?5 WHERE id = ?1")                          \
    X(RESERVE_ADD, "iittiiii", "INSERT INTO reservation (id, project, name, gpus, count, from_ms, until_ms, ended_ms, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8)") \
    X(RESERVE_BEGIN, "i", "UPDATE reservation SET begun = 1 WHERE id = ?1")                                                     \
    X(RESERVE_END, "ii", "UPDATE reservation SET ended_ms = ?2 WHERE id = ?1")                                                  \
    X(EVICTED_ADD, "iii", "INSERT INTO evicted (attempt, at_ms, gpu_milli) VALUES (?1, ?2, ?3)")                                 \
    X(EVICTED_DROP, "i", "DELETE FROM evicted WHERE at_ms <= ?1")                                                              \
    X(USAGE_ADD, "iiiiiitiiiiiiiii", "INSERT INTO usage (attempt, project, owner_kind, owner, job, node, flavor, gpu_milli, gpu_mib, cpu_milli, mem_mib, started_ms, ended_ms, billable, simulated, rolled) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)") \
    X(USAGE_PART, "ii", "UPDATE usage SET part_of = ?2 WHERE attempt = ?1")                                                     \
    X(USAGE_VOID, "i", "UPDATE usage SET billable = 0 WHERE attempt = ?1")                                                     \
    X(USAGE_CUT, "iii", "UPDATE usage SET started_ms = ?2, ended_ms = ?3 WHERE attempt = ?1")                                    \
    X(USAGE_ROLLED, "i", "UPDATE usage SET rolled = 1 WHERE attempt = ?1")                                                     \
    X(USAGE_DAY_ADD, "iiiitiiiiiiii", "INSERT INTO usage_day (day, project, owner_kind, owner, flavor, simulated, attempts, ms, gpu_milli_ms, gpu_mib_ms, cpu_milli_ms, mem_mib_ms, longest_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) ON CONFLICT (day, project, owner_kind, owner, flavor, simulated) DO UPDATE SET attempts = usage_day.attempts + excluded.attempts, ms = usage_day.ms + excluded.ms, gpu_milli_ms = usage_day.gpu_milli_ms + excluded.gpu_milli_ms, gpu_mib_ms = usage_day.gpu_mib_ms + excluded.gpu_mib_ms, cpu_milli_ms = usage_day.cpu_milli_ms + excluded.cpu_milli_ms, mem_mib_ms = usage_day.mem_mib_ms + excluded.mem_mib_ms, longest_ms = CASE WHEN excluded.longest_ms > usage_day.longest_ms THEN excluded.longest_ms ELSE usage_day.longest_ms END") \
    X(USAGE_DROP, "i", "DELETE FROM usage WHERE attempt = ?1")                                                                 \
    X(JOB_DROP, "i", "DELETE FROM job WHERE id = ?1 AND state >= 4")                                                           \
    X(TASK_DROP, "ii", "DELETE FROM task WHERE job = ?1 AND task <= ?2")                                                       \
    X(ATTEMPT_DROP, "ii", "DELETE FROM attempt WHERE job = ?1 AND task <= ?2")                                                 \
    X(EVENT_DROP, "i", "DELETE FROM event WHERE seq <= ?1")                                                                    \
    X(INBOX_ADD, "it", "INSERT INTO audit_inbox (id, note) VALUES (?1, ?2)")                                                   \
    X(INBOX_DROP, "i", "DELETE FROM audit_inbox WHERE id = ?1")                                                                \
    X(AUDIT_DROP, "i", "DELETE FROM audit_note WHERE number <= ?1")                                                            \
    X(VOLUME_ADD, "iitii", "INSERT INTO volume (id, project, name, node, created_ms, version) VALUES (?1, ?2, ?3, ?4, ?5, 1)")  \
    X(DISK_ADD, "iitiii", "INSERT INTO volume (id, project, name, node, created_ms, version, job) VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6)") \
    X(VOLUME_NODE, "ii", "UPDATE volume SET node = ?2 WHERE id = ?1")                                                          \
    X(VOLUME_DROP, "i", "DELETE FROM volume WHERE id = ?1")                                                                    \
    X(GONER_ADD, "ii", "INSERT INTO goner (volume, node) VALUES (?1, ?2)")                                                    \
    X(GONER_DROP, "i", "DELETE FROM goner WHERE volume = ?1")                                                                  \
    X(IMAGE_ADD, "iitttii", "INSERT INTO image (id, project, name, digest, format, size, created_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)") \
    X(IMAGE_DROP, "i", "DELETE FROM image WHERE id = ?1")                                                                      \
    X(BLOB_USED, "iti", "UPDATE blob SET used_ms = ?3 WHERE project = ?1 AND digest = ?2 AND used_ms < ?3 - 3600000")         \
    X(BLOB_DROP, "iti", "DELETE FROM blob WHERE project = ?1 AND digest = ?2 AND used_ms < ?3 AND created_ms < ?3")            \
    X(BLOB_ADD, "itii", "INSERT INTO blob (project, digest, size, created_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (project, digest) DO NOTHING") \
    X(EVENT_ADD, "iiitttiittttitti", "INSERT INTO event (seq, at_ms, project, kind, subject, actor, actor_id, apikey, address, request, idem, data, audit, verb, chain, idem_slot) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)") \
    X(AUDIT_ADD, "iiitttiitttit", "INSERT INTO audit_note (number, at_ms, project, verb, subject, actor, actor_id, apikey, address, request, result, times, chain) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)") \
    X(ARCHIVE_ADD, "tiiiiiitt", "INSERT INTO archive (kind, segment, first, last, from_ms, to_ms, entries, chain, lines) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)") \
    X(AUDIT_HEAD_SET, "iitt", "INSERT INTO audit_head (id, number, chain, mac) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET number = ?2, chain = ?3, mac = ?4") \
    X(RESTORED_DROP, "", "DELETE FROM restored")                                                                               \
    /* --- the writer's memory, read once at start */                                                                          \
    X(LOAD_ORG, "", "SELECT id, name, created_ms FROM org ORDER BY id")                                                        \
    X(LOAD_PROJECT, "", "SELECT id, org, name, state, quota, created_ms, version, weight, residency, net, egress, mbit FROM project ORDER BY id")            \
    X(LOAD_LIMIT, "", "SELECT project, owner, model, tasks, gpu_milli, day_milli, week_milli, month_milli FROM quota_limit ORDER BY project, owner, model") \
    X(LOAD_USED, "i", "SELECT project, owner, flavor, day, CAST(SUM(gpu_milli_ms) AS BIGINT), CAST(SUM(cpu_milli_ms) AS BIGINT), CAST(SUM(mem_mib_ms) AS BIGINT) FROM usage_day WHERE day >= ?1 GROUP BY project, owner, flavor, day ORDER BY project, owner, flavor, day") \
    X(LOAD_PERSON, "", "SELECT id, name, password, roles, state, created_ms, version FROM person ORDER BY id")                 \
    X(LOAD_MEMBER, "", "SELECT project, person, roles FROM member ORDER BY project, person")                                   \
    X(LOAD_ACCOUNT, "", "SELECT id, project, name, roles, state, created_ms FROM account ORDER BY id")                         \
    X(LOAD_KEY, "ii", "SELECT id, owner_kind, owner, project, roles, name, hint, hash, state, created_ms, expires_ms FROM apikey WHERE state = 0 AND (expires_ms = 0 OR expires_ms > ?1) AND id > ?2 ORDER BY id LIMIT 2000") \
    X(LOAD_SECRET, "", "SELECT id, project, name, sealed, created_ms, updated_ms, version FROM secret ORDER BY id")            \
    X(LOAD_NODE, "", "SELECT id, name, state, info, kept, joined_ms, version, cordoned, rotate_ms, drain, drain_until_ms, lost, settings FROM node ORDER BY id")                           \
    X(LOAD_RULE, "", "SELECT name, value FROM rule ORDER BY name")                                                             \
    X(LOAD_RESERVE, "", "SELECT id, project, name, gpus, count, from_ms, until_ms, created_ms, begun FROM reservation WHERE ended_ms = 0 ORDER BY id") \
    X(LOAD_EVICTED, "", "SELECT attempt, at_ms, gpu_milli FROM evicted ORDER BY attempt")                                          \
    X(LOAD_TOKEN, "i", "SELECT id, hash, created_ms, expires_ms FROM jointoken WHERE used_ms = 0 AND expires_ms > ?1 ORDER BY id") \
    X(LOAD_JOB, "i", "SELECT id, project, owner_kind, owner, name, state, reason, outcome, priority, count, next_task, done, failed, cancelled, exit_code, spec, flavor, created_ms, started_ms, ended_ms, version, ready_ms FROM job WHERE state < 4 AND id > ?1 ORDER BY id LIMIT 2000") \
    X(LOAD_TASK, "ii", "SELECT job, task, project, state, outcome, tries, faults, attempt, exit_code, signal, detail, not_before_ms, started_ms, ended_ms, evictions, suspicions, suspected_ms FROM task WHERE state < 4 AND (job, task) > (?1, ?2) ORDER BY job, task LIMIT 2000") \
    X(LOAD_SKIPPED, "ii", "SELECT t.job, t.task FROM job j CROSS JOIN task t WHERE j.state < 4 AND j.id >= ?1 AND t.job = j.id AND t.task >= j.next_task AND t.state >= 4 AND (t.job, t.task) > (?1, ?2) ORDER BY j.id, t.task LIMIT 2000") \
    X(LOAD_ATTEMPT, "i", "SELECT id, job, task, project, node, state, outcome, lease, run_for_s, placed_ms, started_ms, grace_s, stop_as, detail, stop_ms FROM attempt WHERE state < 4 AND id > ?1 ORDER BY id LIMIT 2000") \
    X(LOAD_VOLUME, "", "SELECT id, project, name, node, created_ms, version, job FROM volume ORDER BY id")                          \
    X(LOAD_GONER, "", "SELECT volume, node FROM goner ORDER BY volume")                                                       \
    X(LOAD_IMAGE, "", "SELECT id, project, name, digest, format, size, created_ms FROM image ORDER BY id")                     \
    X(LOAD_IDEM, "ii", IDEM_JOB "created_ms >= ?1 AND (created_ms, id) > (?1, ?2) ORDER BY created_ms, id LIMIT 2000") \
    X(LOAD_IDEM_EVENT, "ii", IDEM_EVENT "at_ms >= ?1 AND (at_ms, seq) > (?1, ?2) ORDER BY at_ms, seq LIMIT 2000") \
    X(LOAD_IDEM_BARE, "ii", IDEM_JOB "idem_slot IS NULL AND created_ms >= ?1 AND (created_ms, id) > (?1, ?2) ORDER BY created_ms, id LIMIT 2000") \
    X(LOAD_IDEM_EVENT_BARE, "ii", IDEM_EVENT "idem_slot IS NULL AND at_ms >= ?1 AND (at_ms, seq) > (?1, ?2) ORDER BY at_ms, seq LIMIT 2000") \
    X(IDEM_SINCE, "i", "SELECT created_ms FROM job WHERE idem IS NOT NULL ORDER BY created_ms DESC LIMIT 1 OFFSET ?1")              \
    X(IDEM_EVENT_SINCE, "i", "SELECT at_ms FROM event WHERE idem IS NOT NULL ORDER BY at_ms DESC LIMIT 1 OFFSET ?1")                \
    X(IDEM_LOOK, "iii", IDEM_JOB "idem_slot IN (?1, ?2, ?3) UNION ALL " IDEM_EVENT "idem_slot IN (?1, ?2, ?3) LIMIT 64")             \
    X(LOAD_RESTORED, "", "SELECT COUNT(*) FROM restored")                                                                      \
    X(LAST_EVENT, "", "SELECT COALESCE(MAX(seq), 0) FROM event")                                                               \
    X(LAST_ID, "", "SELECT MAX(id) FROM (SELECT COALESCE(MAX(id), 0) AS id FROM job UNION ALL SELECT COALESCE(MAX(id), 0) FROM attempt UNION ALL SELECT COALESCE(MAX(id), 0) FROM apikey UNION ALL SELECT COALESCE(MAX(id), 0) FROM org UNION ALL SELECT COALESCE(MAX(id), 0) FROM project UNION ALL SELECT COALESCE(MAX(id), 0) FROM person UNION ALL SELECT COALESCE(MAX(id), 0) FROM account UNION ALL SELECT COALESCE(MAX(id), 0) FROM secret UNION ALL SELECT COALESCE(MAX(id), 0) FROM node UNION ALL SELECT COALESCE(MAX(id), 0) FROM jointoken UNION ALL SELECT COALESCE(MAX(id), 0) FROM volume UNION ALL SELECT COALESCE(MAX(id), 0) FROM image UNION ALL SELECT COALESCE(MAX(id), 0) FROM reservation) AS ids") \
    /* --- several servers */                                                                                                  \
    X(LEASE_TAKE, "iiiit", "UPDATE writer SET epoch = epoch + 1, counted = epoch + 1, renewed = renewed + 1, pid = ?2, since = ?3, server = ?4, address = ?5 WHERE one = 1 AND epoch = ?1") \
    X(LEASE_RENEW, "it", "UPDATE writer SET renewed = renewed + 1, address = ?2 WHERE one = 1 AND epoch = ?1")                 \
    X(LEASE_COUNT, "i", "UPDATE writer SET renewed = renewed + ?1 WHERE one = 1")                                              \
    X(LEASE_DROP, "i", "UPDATE writer SET pid = 0, since = 0, server = 0, address = '' WHERE one = 1 AND epoch = ?1")          \
    X(BLOB_PART_ADD, "itiib", "INSERT INTO blob_part (project, digest, n, at_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (project, digest, n) DO UPDATE SET at_ms = ?4") \
    X(BLOB_PART_SWEEP, "i", "DELETE FROM blob_part WHERE at_ms < ?1 AND NOT EXISTS (SELECT 1 FROM blob WHERE blob.project = blob_part.project AND blob.digest = blob_part.digest)") \
    X(BLOB_PART_GET, "iti", "SELECT bytes FROM blob_part WHERE project = ?1 AND digest = ?2 AND n = ?3")                       \
    X(LEASE_LOOK, "", "SELECT epoch, pid, since, server, address, renewed, counted FROM writer WHERE one = 1")                          \
    X(SERVER_SEEN, "itti", "INSERT INTO server (id, address, version, seen_ms) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (id) DO UPDATE SET address = ?2, seen_ms = ?4") \
    X(SERVER_DROP, "ii", "DELETE FROM server WHERE id = ?1 AND (?2 = 0 OR seen_ms = ?2)")                                        \
    X(SERVER_OTHERS, "iti", "DELETE FROM server WHERE id <> ?1 AND (address = ?2 OR ?3 = 1)")                                  \
    X(SERVER_LIST, "", "SELECT id, address, version, seen_ms FROM server ORDER BY id LIMIT 64")                                \
    X(SETTING_SET, "tt", "INSERT INTO setting (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING")                    \
    X(SETTING_GET, "t", "SELECT value FROM setting WHERE name = ?1")                                                           \
    /* --- who asks */                                                                                                         \
    X(AUTH_KEY, "t", "SELECT k.id, k.owner_kind, k.owner, k.project, k.roles, k.expires_ms, k.state, COALESCE(u.name, a.name, n.name), COALESCE(u.roles, a.roles, 0), COALESCE(u.state, a.state, CASE WHEN n.id IS NULL THEN 1 ELSE 0 END) FROM apikey k LEFT JOIN person u ON k.owner_kind = 1 AND u.id = k.owner LEFT JOIN account a ON k.owner_kind = 2 AND a.id = k.owner LEFT JOIN node n ON k.owner_kind = 3 AND n.id = k.owner WHERE k.hash = ?1") \
    X(AUTH_PROJECT, "iti", "SELECT p.id, p.org, COALESCE(m.roles, 0) FROM project p LEFT JOIN member m ON m.project = p.id AND m.person = ?1 WHERE p.state = 0 AND (p.name = ?2 OR p.id = ?3)") \
    X(AUTH_PROJECT_ANY, "i", "SELECT p.id, p.org, m.roles FROM project p JOIN member m ON m.project = p.id WHERE m.person = ?1 AND p.state = 0 ORDER BY p.id LIMIT 1") \
    X(PERSON_BY_NAME, "t", "SELECT id, name, password, roles, state, created_ms, version FROM person WHERE name = ?1")         \
    /* --- reads; every one that a tenant can reach names the project */                                                       \
    X(JOB_GET, "ii", "SELECT " JOB_COLUMNS ", COALESCE((SELECT t.detail FROM task t WHERE t.job = job.id AND t.detail <> '' ORDER BY t.task LIMIT 1), ''), why, ready_ms FROM job WHERE project = ?1 AND id = ?2") \
    X(JOB_BY_NAME, "it", "SELECT id FROM (SELECT id FROM job WHERE state < 4 AND project = ?1 AND name = ?2 ORDER BY id DESC LIMIT 1) AS a UNION ALL SELECT id FROM (SELECT id FROM job WHERE ended_ms > 0 AND project = ?1 AND name = ?2 ORDER BY id DESC LIMIT 1) AS b ORDER BY id DESC LIMIT 1") \
    /* Live jobs are few and have an index of their own (the + keeps SQLite from another one); what has ended is found by what is asked for. */ \
    X(JOB_LIST, "iii", "SELECT " JOB_COLUMNS " FROM job WHERE id IN (SELECT id FROM (SELECT id FROM job WHERE state < 4 AND project = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3) AS a UNION ALL SELECT id FROM (SELECT id FROM job WHERE ended_ms > 0 AND project = ?1 AND state = 4 AND id < ?2 ORDER BY id DESC LIMIT ?3) AS b UNION ALL SELECT id FROM (SELECT id FROM job WHERE ended_ms > 0 AND project = ?1 AND state = 5 AND id < ?2 ORDER BY id DESC LIMIT ?3) AS c UNION ALL SELECT id FROM (SELECT id FROM job WHERE ended_ms > 0 AND project = ?1 AND state = 6 AND id < ?2 ORDER BY id DESC LIMIT ?3) AS d) ORDER BY id DESC LIMIT ?3") \
    X(JOB_LIST_LIVE, "iiiii", "SELECT " JOB_COLUMNS " FROM job WHERE state < 4 AND project = ?1 AND id < ?2 AND state >= ?3 AND state <= ?4 ORDER BY id DESC LIMIT ?5") \
    X(JOB_LIST_ENDED, "iiii", "SELECT " JOB_COLUMNS " FROM job WHERE ended_ms > 0 AND project = ?1 AND id < ?2 AND state = ?3 ORDER BY id DESC LIMIT ?4") \
    X(JOB_LIST_NAMED, "iiiiti", "SELECT " JOB_COLUMNS " FROM job WHERE id IN (SELECT id FROM (SELECT id FROM job WHERE state < 4 AND project = ?1 AND name = ?5 AND id < ?2 AND +state >= ?3 AND +state <= ?4 ORDER BY id DESC LIMIT ?6) AS a UNION ALL SELECT id FROM (SELECT id FROM job WHERE ended_ms > 0 AND project = ?1 AND name = ?5 AND id < ?2 AND +state >= ?3 AND +state <= ?4 ORDER BY id DESC LIMIT ?6) AS b) ORDER BY id DESC LIMIT ?6") \
    X(TASK_LIST, "iiiii", "SELECT job, task, project, state, outcome, tries, faults, attempt, exit_code, signal, detail, not_before_ms, started_ms, ended_ms, COALESCE((SELECT a.lease FROM attempt a WHERE a.id = task.attempt AND task.state = 2), '') FROM task WHERE project = ?1 AND job = ?2 AND task > ?3 AND task <= ?4 ORDER BY task LIMIT ?5") \
    X(TASK_FIRST, "iii", "SELECT task FROM task WHERE project = ?1 AND job = ?2 AND state < 4 AND state = ?3 ORDER BY task LIMIT 1") \
    X(ATTEMPT_LIST, "iiii", "SELECT a.id, a.task, CASE WHEN a.stop_as > 0 AND a.state < 4 THEN 3 ELSE a.state END, a.outcome, a.lease, a.run_for_s, a.placed_ms, a.started_ms, a.ended_ms, a.exit_code, a.signal, a.detail, COALESCE(n.name, ''), CASE WHEN a.state < 4 THEN COALESCE(n.info, '') ELSE '' END FROM attempt a LEFT JOIN node n ON n.id = a.node WHERE a.project = ?1 AND a.job = ?2 AND a.id > ?3 ORDER BY a.id LIMIT ?4") \
    X(ATTEMPT_LAST, "iii", "SELECT id, node, state FROM attempt WHERE project = ?1 AND job = ?2 AND task = ?3 ORDER BY id DESC LIMIT 1") \
    X(ATTEMPT_OF, "iiii", "SELECT id, node, state FROM attempt WHERE project = ?1 AND job = ?2 AND task = ?3 AND id = ?4") \
    X(ATTEMPT_NTH, "iiii", "SELECT id, node, state FROM attempt WHERE project = ?1 AND job = ?2 AND task = ?3 ORDER BY id LIMIT 1 OFFSET ?4") \
    X(EVENT_LIST, "iii", "SELECT seq, at_ms, project, kind, subject, actor, data FROM event WHERE project = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3") \
    X(EVENT_LIST_ALL, "ii", "SELECT seq, at_ms, project, kind, subject, actor, data FROM event WHERE seq > ?1 ORDER BY seq LIMIT ?2") \
    X(AUDIT_HEAD, "i", "SELECT number, chain, mac FROM audit_head WHERE id = ?1")                                                \
    X(AUDIT_LAST, "", "SELECT MAX(number) FROM (SELECT COALESCE(MAX(audit), 0) AS number FROM event WHERE audit > 0 UNION ALL SELECT COALESCE(MAX(number), 0) FROM audit_note UNION ALL SELECT COALESCE(MAX(last), 0) FROM archive WHERE kind = 'audit') AS numbers") \
    X(AUDIT_RANGE, "ii", AUDIT_EVENT "WHERE audit >= ?1 AND audit <= ?2 UNION ALL " AUDIT_NOTE "WHERE number >= ?1 AND number <= ?2 ORDER BY 1") \
    X(AUDIT_SEQ, "i", "SELECT COALESCE(MAX(seq), 0) FROM event WHERE audit = (SELECT MAX(e.audit) FROM event e WHERE e.audit < ?1)") \
    X(AUDIT_DOWN, "iiii", "SELECT * FROM (" AUDIT_EVENT "WHERE project = ?1 AND seq <= ?2 AND audit IS NOT NULL ORDER BY seq DESC LIMIT ?4) AS e UNION ALL SELECT * FROM (" AUDIT_NOTE "WHERE project = ?1 AND number < ?3 ORDER BY number DESC LIMIT ?4) AS n ORDER BY 1 DESC LIMIT ?4") \
    X(AUDIT_UP, "iiii", "SELECT * FROM (" AUDIT_EVENT "WHERE project = ?1 AND seq > ?2 AND audit IS NOT NULL ORDER BY seq LIMIT ?4) AS e UNION ALL SELECT * FROM (" AUDIT_NOTE "WHERE project = ?1 AND number > ?3 ORDER BY number LIMIT ?4) AS n ORDER BY 1 LIMIT ?4") \
    X(ARCHIVE_AT, "ti", "SELECT segment, first, last, from_ms, to_ms, entries, chain, lines FROM archive WHERE kind = ?1 AND last >= ?2 ORDER BY last LIMIT 1") \
    X(ARCHIVE_GET, "ti", "SELECT segment, first, last, from_ms, to_ms, entries, chain, lines FROM archive WHERE kind = ?1 AND segment = ?2") \
    X(ARCHIVE_LAST, "t", "SELECT segment, last, chain FROM archive WHERE kind = ?1 ORDER BY segment DESC LIMIT 1") \
    X(KEY_LIST, "iiiii", "SELECT k.id, k.name, k.state, k.roles, k.hint, k.created_ms, k.expires_ms, COALESCE(u.name, a.name, ''), COALESCE(p.name, '') FROM apikey k LEFT JOIN person u ON k.owner_kind = 1 AND u.id = k.owner LEFT JOIN account a ON k.owner_kind = 2 AND a.id = k.owner LEFT JOIN project p ON p.id = k.project WHERE ((k.owner_kind = ?1 AND k.owner = ?2) OR (?3 <> 0 AND k.owner_kind = 2 AND k.project = ?3)) AND k.id > ?4 ORDER BY k.id LIMIT ?5") \
    X(SSH_KEY_LIST, "iiii", "SELECT id, name, bare, comment, created_ms FROM ssh_key WHERE owner_kind = ?1 AND owner = ?2 AND id > ?3 AND removed_ms = 0 ORDER BY id LIMIT ?4") \
    X(SSH_KEY_ALL, "iii", "SELECT id, name, bare, comment, created_ms, removed_ms FROM ssh_key WHERE owner_kind = ?1 AND owner = ?2 ORDER BY id LIMIT ?3") \
    X(USAGE_EDGE, "iiiii", USAGE_COLUMNS "WHERE u.ended_ms >= ?1 AND u.ended_ms <= ?5 AND (u.ended_ms, u.attempt) > (?1, ?2) AND u.started_ms < ?3 AND (?4 = 0 OR u.project = ?4) ORDER BY u.ended_ms, u.attempt LIMIT 10000") \
    X(USAGE_EDGE_OF, "iiiii", USAGE_COLUMNS "WHERE u.project = ?4 AND u.ended_ms >= ?1 AND u.ended_ms <= ?5 AND (u.ended_ms, u.attempt) > (?1, ?2) AND u.started_ms < ?3 ORDER BY u.ended_ms, u.attempt LIMIT 10000") \
    X(USAGE_UNROLLED, "i", USAGE_COLUMNS "WHERE u.rolled = 0 AND u.attempt > ?1 ORDER BY u.attempt LIMIT 10000") \
    X(USAGE_DAYS, "iii", "SELECT d.day, d.project, d.owner_kind, d.owner, d.flavor, d.simulated, d.attempts, d.ms, d.gpu_milli_ms, d.gpu_mib_ms, d.cpu_milli_ms, d.mem_mib_ms, COALESCE(p.name, ''), COALESCE(o.name, a.name, '') FROM usage_day d LEFT JOIN project p ON p.id = d.project LEFT JOIN person o ON o.id = d.owner LEFT JOIN account a ON a.id = d.owner WHERE d.day >= ?1 AND d.day < ?2 AND (?3 = 0 OR d.project = ?3) ORDER BY d.day") \
    X(TRACE_ENDED, "iiiii", TRACE_USAGE "WHERE u.ended_ms >= ?1 AND u.ended_ms < ?3 AND (u.ended_ms, u.attempt) > (?1, ?2) AND (?4 = 0 OR u.project = ?4) ORDER BY u.ended_ms, u.attempt LIMIT ?5") \
    X(TRACE_ENDED_OF, "iiiii", TRACE_USAGE "WHERE u.project = ?4 AND u.ended_ms >= ?1 AND u.ended_ms < ?3 AND (u.ended_ms, u.attempt) > (?1, ?2) ORDER BY u.ended_ms, u.attempt LIMIT ?5") \
    X(TRACE_LIVE, "iii", "SELECT a.id, a.project, a.lease, CAST(0 AS BIGINT), CAST(0 AS BIGINT), CAST(0 AS BIGINT), a.placed_ms, CAST(0 AS BIGINT)," TRACE_JOB "FROM attempt a JOIN job j ON j.id = a.job LEFT JOIN project p ON p.id = a.project WHERE a.state < 4 AND a.id > ?1 AND (?2 = 0 OR a.project = ?2) ORDER BY a.id LIMIT ?3") \
    X(USAGE_LONGEST, "i", "SELECT COALESCE(MAX(longest_ms), 0) FROM usage_day WHERE day <= ?1") \
    X(USAGE_DAY_ENDS, "", "SELECT COALESCE(MIN(day), 0), COALESCE(MAX(day), 0) FROM usage_day") \
    X(ARCHIVE_OVERLAP, "tiii", "SELECT segment, lines FROM archive WHERE kind = ?1 AND segment > ?2 AND to_ms >= ?3 AND from_ms < ?4 ORDER BY segment LIMIT 1") \
    X(OWNER_NAMES, "ii", "SELECT COALESCE((SELECT name FROM project WHERE id = ?1), ''), COALESCE((SELECT name FROM person WHERE id = ?2), (SELECT name FROM account WHERE id = ?2), '')") \
    /* --- what is old */                                                                                                      \
    X(INBOX_LIST, "i", "SELECT id, note FROM audit_inbox ORDER BY id LIMIT ?1")                                                \
    X(OLD_BLOBS, "ii", "SELECT project, digest FROM blob WHERE used_ms < ?1 AND created_ms < ?1 ORDER BY used_ms LIMIT ?2")      \
    X(OLD_TOKENS, "ii", "SELECT id, hash FROM jointoken WHERE expires_ms < ?1 OR (used_ms > 0 AND used_ms < ?1) ORDER BY id LIMIT ?2") \
    X(BLOB_OLD, "iti", "SELECT 1 FROM blob WHERE project = ?1 AND digest = ?2 AND used_ms < ?3 AND created_ms < ?3")           \
    X(OLD_JOBS, "ii", "SELECT id FROM job WHERE ended_ms > 0 AND ended_ms < ?1 ORDER BY ended_ms LIMIT ?2")                      \
    X(OLD_TASKS, "ii", "SELECT task FROM task WHERE job = ?1 ORDER BY task LIMIT ?2")                                          \
    X(OLD_EVENTS, "i", "SELECT seq, at_ms, COALESCE(audit, 0) FROM event ORDER BY seq LIMIT ?1")                               \
    X(OLD_USAGE, "ii", "SELECT attempt, project, owner_kind, owner, job, node, flavor, gpu_milli, gpu_mib, cpu_milli, mem_mib, started_ms, ended_ms, billable, simulated FROM usage WHERE ended_ms < ?1 AND rolled = 1 ORDER BY ended_ms, attempt LIMIT ?2") \
    X(EVENT_FIRST, "", "SELECT COALESCE(MIN(seq), 0) FROM event")                                                              \
    X(ORG_LIST, "ii", "SELECT id, name, created_ms FROM org WHERE id > ?1 ORDER BY id LIMIT ?2")                               \
    X(PROJECT_LIST, "iiii", "SELECT p.id, p.name, o.name, p.quota, p.created_ms, p.version, COALESCE(m.roles, 0), p.weight, p.residency, p.net, p.egress, p.mbit FROM project p JOIN org o ON o.id = p.org LEFT JOIN member m ON m.project = p.id AND m.person = ?1 WHERE (?2 = 1 OR m.roles IS NOT NULL) AND p.id > ?3 ORDER BY p.id LIMIT ?4") \
    X(PROJECT_FIND, "iiti", "SELECT p.id, p.name, o.name, p.quota, p.created_ms, p.version, COALESCE(m.roles, 0), p.weight, p.residency, p.net, p.egress, p.mbit FROM project p JOIN org o ON o.id = p.org LEFT JOIN member m ON m.project = p.id AND m.person = ?1 WHERE (?2 = 1 OR m.roles IS NOT NULL) AND (p.name = ?3 OR p.id = ?4)") \
    X(PROJECT_NAME, "i", "SELECT name FROM project WHERE id = ?1")                                                             \
    X(MEMBER_LIST, "iii", "SELECT u.id, u.name, u.state, m.roles FROM member m JOIN person u ON u.id = m.person WHERE m.project = ?1 AND u.id > ?2 ORDER BY u.id LIMIT ?3") \
    X(PERSON_LIST, "ii", "SELECT id, name, roles, state, created_ms, version FROM person WHERE id > ?1 ORDER BY id LIMIT ?2")   \
    X(ACCOUNT_LIST, "iii", "SELECT id, name, roles, state FROM account WHERE project = ?1 AND id > ?2 ORDER BY id LIMIT ?3")    \
    X(SECRET_LIST, "iii", "SELECT id, name, created_ms, updated_ms, version FROM secret WHERE project = ?1 AND id > ?2 ORDER BY id LIMIT ?3") \
    X(VOLUME_LIST, "iii", "SELECT v.id, v.name, v.created_ms, COALESCE(n.name, '') FROM volume v LEFT JOIN node n ON n.id = v.node WHERE v.project = ?1 AND v.job = 0 AND v.id > ?2 ORDER BY v.id LIMIT ?3") \
    X(VOLUME_FIND, "iti", "SELECT id, node FROM volume WHERE project = ?1 AND job = 0 AND (name = ?2 OR id = ?3)")                         \
    X(IMAGE_LIST, "iii", "SELECT id, name, digest, format, size, created_ms FROM image WHERE project = ?1 AND id > ?2 ORDER BY id LIMIT ?3") \
    X(NODE_LIST, "ii", "SELECT id, name, state, info, joined_ms, version, drain, drain_until_ms, lost, settings FROM node WHERE id > ?1 ORDER BY id LIMIT ?2")         \
    X(NODE_FIND, "ti", "SELECT id, name, state, info, joined_ms, version, drain, drain_until_ms, lost, settings FROM node WHERE name = ?1 OR id = ?2")                \
    X(RESERVE_LIVE, "iii", "SELECT r.id, r.name, p.name, r.gpus, r.count, r.from_ms, r.until_ms, r.ended_ms, r.created_ms FROM reservation r JOIN project p ON p.id = r.project WHERE r.ended_ms = 0 AND (?1 = 0 OR r.project = ?1) AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3") \
    X(RESERVE_ALL, "ii", "SELECT r.id, r.name, p.name, r.gpus, r.count, r.from_ms, r.until_ms, r.ended_ms, r.created_ms FROM reservation r JOIN project p ON p.id = r.project WHERE r.id < ?1 ORDER BY r.id DESC LIMIT ?2")                                      \
    X(RESERVE_OF, "iii", "SELECT r.id, r.name, p.name, r.gpus, r.count, r.from_ms, r.until_ms, r.ended_ms, r.created_ms FROM reservation r JOIN project p ON p.id = r.project WHERE r.project = ?1 AND r.id < ?2 ORDER BY r.id DESC LIMIT ?3")                   \
    X(RESERVE_FIND, "iti", "SELECT r.id, r.name, p.name, r.gpus, r.count, r.from_ms, r.until_ms, r.ended_ms, r.created_ms FROM reservation r JOIN project p ON p.id = r.project WHERE (?1 = 0 OR r.project = ?1) AND r.id IN (SELECT id FROM (SELECT id FROM reservation WHERE name = ?2 ORDER BY id DESC LIMIT 1) AS n UNION ALL SELECT ?3)") \
    X(NODE_STATES, "i", "SELECT state, drain, lost, COUNT(*) FROM node GROUP BY state, drain, lost ORDER BY state, drain, lost LIMIT ?1") \
    X(FLEET_JOBS, "", "SELECT state, COUNT(*) FROM job WHERE state < 4 GROUP BY state ORDER BY state")                          \
    X(LIMIT_LIST, "i", "SELECT l.project, l.owner, l.model, l.tasks, l.gpu_milli, l.day_milli, l.week_milli, l.month_milli, p.name, COALESCE(u.name, a.name, '') FROM quota_limit l JOIN project p ON p.id = l.project LEFT JOIN person u ON u.id = l.owner LEFT JOIN account a ON a.id = l.owner WHERE l.project = ?1 ORDER BY l.owner, l.model") \
    X(LIMIT_HELD, "i", "SELECT a.lease, n.info, j.owner, j.spec, a.placed_ms FROM attempt a JOIN job j ON j.id = a.job JOIN node n ON n.id = a.node WHERE a.state < 4 AND a.project = ?1") \
    X(LIMIT_USED, "ii", "SELECT owner, flavor, day, CAST(SUM(gpu_milli_ms) AS BIGINT), CAST(SUM(cpu_milli_ms) AS BIGINT), CAST(SUM(mem_mib_ms) AS BIGINT) FROM usage_day WHERE project = ?1 AND day >= ?2 GROUP BY owner, flavor, day ORDER BY owner, flavor, day") \
    X(INSTANCE_SPECS, "i", "SELECT spec FROM job WHERE state < 4 AND project = ?1 AND spec LIKE '%\"instance\"%'") \
    X(LIMIT_JOBS, "i", "SELECT COUNT(*) FROM job WHERE state < 4 AND project = ?1")                                            \
    X(QUEUE_AHEAD, "iiiiiiii", "SELECT COUNT(*) FROM job WHERE state < 4 AND state = 0 AND project = ?1 AND priority >= ?2 AND priority <= ?3 AND reason <> ?7 AND reason <> ?8 AND (priority > ?4 OR (priority = ?4 AND (CASE WHEN ready_ms > created_ms THEN ready_ms ELSE created_ms END < ?6 OR (CASE WHEN ready_ms > created_ms THEN ready_ms ELSE created_ms END = ?6 AND id < ?5))))") \
    X(QUEUE_WEIGHTS, "i", "SELECT COALESCE(CAST(SUM(weight) AS BIGINT), 0), COUNT(*) FROM project WHERE id > ?1 AND EXISTS (SELECT 1 FROM job WHERE job.state < 4 AND job.project = project.id)") \
    X(QUEUE_PROJECT, "i", "SELECT weight, quota FROM project WHERE id = ?1") \
    X(LEASE_LIST, "i", "SELECT node, lease, project FROM attempt WHERE state < 4 AND (?1 = 0 OR node = ?1)")                   \
    X(BLOB_ON_NODE, "itt", "SELECT j.project FROM attempt a JOIN job j ON j.id = a.job WHERE a.state < 4 AND a.node = ?1 AND (j.spec LIKE ?2 OR EXISTS (SELECT 1 FROM image i WHERE i.project = j.project AND i.digest = ?3 AND j.spec LIKE '%\"image\":\"' || i.name || '\"%')) AND EXISTS (SELECT 1 FROM blob b WHERE b.project = j.project AND b.digest = ?3) LIMIT 1") \
    X(BLOB_GET, "it", "SELECT size FROM blob WHERE project = ?1 AND digest = ?2")

enum statement {
#define X(name, types, sql) ST_##name,
    STATEMENTS(X)
#undef X
    ST_COUNT
};
