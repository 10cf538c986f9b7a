/* libpq.h - PostgreSQL's client library, loaded when a store asks for it.
 *
 * It brings LDAP, Kerberos and a second TLS library with it, some 3 MB of resident memory in every
 * process that is linked with it. Its functions are called as its own header spells them. */
#pragma once
#include "base/err.h"
#include <libpq-fe.h>

#define LIBPQ(X)                                                                                 \
    X(PQclear) X(PQcmdStatus) X(PQcmdTuples) X(PQconnectdbParams) X(PQconninfoFree)              \
    X(PQconninfoParse) X(PQconsumeInput) X(PQenterPipelineMode) X(PQerrorMessage) X(PQexec)      \
    X(PQexecParams) X(PQexecPrepared) X(PQexitPipelineMode) X(PQfinish) X(PQfname) X(PQfreemem)  \
    X(PQftype) X(PQgetResult) X(PQgetisnull) X(PQgetlength) X(PQgetvalue) X(PQnfields)           \
    X(PQntuples) X(PQpipelineSync) X(PQprepare) X(PQresultErrorField) X(PQresultStatus)          \
    X(PQsendDescribePrepared) X(PQsendPrepare) X(PQsendQueryParams) X(PQsendQueryPrepared)       \
    X(PQsetNoticeProcessor) X(PQsetSingleRowMode) X(PQsocket) X(PQstatus) X(PQtransactionStatus)

struct libpq {
#define X(name) __typeof__(name) *name;
    LIBPQ(X)
#undef X
};
/* Rule zero: a global, since a library is loaded into the process and not into anything smaller. Set once, by libpq_load. */
extern struct libpq libpq;
MUST_CHECK bool libpq_load(struct err *err);    /* from any thread, as often as one likes */

#define PQclear(...)                libpq.PQclear(__VA_ARGS__)
#define PQcmdStatus(...)            libpq.PQcmdStatus(__VA_ARGS__)
#define PQcmdTuples(...)            libpq.PQcmdTuples(__VA_ARGS__)
#define PQconnectdbParams(...)      libpq.PQconnectdbParams(__VA_ARGS__)
#define PQconninfoFree(...)         libpq.PQconninfoFree(__VA_ARGS__)
#define PQconninfoParse(...)        libpq.PQconninfoParse(__VA_ARGS__)
#define PQconsumeInput(...)         libpq.PQconsumeInput(__VA_ARGS__)
#define PQenterPipelineMode(...)    libpq.PQenterPipelineMode(__VA_ARGS__)
#define PQerrorMessage(...)         libpq.PQerrorMessage(__VA_ARGS__)
#define PQexec(...)                 libpq.PQexec(__VA_ARGS__)
#define PQexecParams(...)           libpq.PQexecParams(__VA_ARGS__)
#define PQexecPrepared(...)         libpq.PQexecPrepared(__VA_ARGS__)
#define PQexitPipelineMode(...)     libpq.PQexitPipelineMode(__VA_ARGS__)
#define PQfinish(...)               libpq.PQfinish(__VA_ARGS__)
#define PQfname(...)                libpq.PQfname(__VA_ARGS__)
#define PQfreemem(...)              libpq.PQfreemem(__VA_ARGS__)
#define PQftype(...)                libpq.PQftype(__VA_ARGS__)
#define PQgetResult(...)            libpq.PQgetResult(__VA_ARGS__)
#define PQgetisnull(...)            libpq.PQgetisnull(__VA_ARGS__)
#define PQgetlength(...)            libpq.PQgetlength(__VA_ARGS__)
#define PQgetvalue(...)             libpq.PQgetvalue(__VA_ARGS__)
#define PQnfields(...)              libpq.PQnfields(__VA_ARGS__)
#define PQntuples(...)              libpq.PQntuples(__VA_ARGS__)
#define PQpipelineSync(...)         libpq.PQpipelineSync(__VA_ARGS__)
#define PQprepare(...)              libpq.PQprepare(__VA_ARGS__)
#define PQresultErrorField(...)     libpq.PQresultErrorField(__VA_ARGS__)
#define PQresultStatus(...)         libpq.PQresultStatus(__VA_ARGS__)
#define PQsendDescribePrepared(...) libpq.PQsendDescribePrepared(__VA_ARGS__)
#define PQsendPrepare(...)          libpq.PQsendPrepare(__VA_ARGS__)
#define PQsendQueryParams(...)      libpq.PQsendQueryParams(__VA_ARGS__)
#define PQsendQueryPrepared(...)    libpq.PQsendQueryPrepared(__VA_ARGS__)
#define PQsetNoticeProcessor(...)   libpq.PQsetNoticeProcessor(__VA_ARGS__)
#define PQsetSingleRowMode(...)     libpq.PQsetSingleRowMode(__VA_ARGS__)
#define PQsocket(...)               libpq.PQsocket(__VA_ARGS__)
#define PQstatus(...)               libpq.PQstatus(__VA_ARGS__)
#define PQtransactionStatus(...)    libpq.PQtransactionStatus(__VA_ARGS__)
