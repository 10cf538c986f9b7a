/* metrics.c - what GPUs do, in the text format of Prometheus, under the names and labels of NVIDIA's DCGM exporter, so that dashboards made for
 * that one work. A figure that a device does not tell has no sample; a simulated GPU has none but that it is there. */
#include "control/gpu_live.h"
#include <stdio.h>

static const struct metric {
    const char *name, *type, *help;
    size_t at;
    bool thousandths;           /* told in units of a thousand of ours */
} metrics_table[] = {
#define LIVE(member) offsetof(struct gpu_live, member)
    { "DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", LIVE(sm_mhz), false },
    { "DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", LIVE(mem_mhz), false },
    { "DCGM_FI_DEV_MEMORY_TEMP", "gauge", "Memory temperature (in C).", LIVE(mem_temp_c), false },
    { "DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", LIVE(temp_c), false },
    { "DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", LIVE(power_mw), true },
    { "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Total energy consumption since boot (in mJ).", LIVE(energy_mj), false },
    { "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "Total number of PCIe retries.", LIVE(replays), false },
    { "DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", LIVE(util), false },
    { "DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).", LIVE(mem_util), false },
    { "DCGM_FI_DEV_ENC_UTIL", "gauge", "Encoder utilization (in %).", LIVE(encoder), false },
    { "DCGM_FI_DEV_DEC_UTIL", "gauge", "Decoder utilization (in %).", LIVE(decoder), false },
    { "DCGM_FI_DEV_XID_ERRORS", "gauge", "Value of the last XID error encountered.", LIVE(xid), false },
    { "DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", LIVE(mem_free_mib), false },
    { "DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", LIVE(mem_used_mib), false },
    { "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Total number of single-bit volatile ECC errors.", LIVE(ecc_corrected), false },
    { "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Total number of double-bit volatile ECC errors.", LIVE(ecc_uncorrected), false },
    { "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Number of remapped rows for uncorrectable errors.", LIVE(rows_uncorrected), false },
    { "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "Number of remapped rows for correctable errors.", LIVE(rows_corrected), false },
    { "DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of rows has failed.", LIVE(row_failure), false },
#undef LIVE
};

static void put_label(struct str *out, const char *name, const char *value)
{
    str_printf(out, "%s%s=\"", out->len && out->at[out->len - 1] != '{' ? "," : "", name);
    for (const char *at = value ? value : ""; *at; at++) {
        if (*at == '"' || *at == '\\')
            str_char(out, '\\');
        if (*at == '\n')
            str_text(out, "\\n");
        else
            str_char(out, *at);
    }
    str_char(out, '"');
}

/* Both spellings of the host: the exporter's is small from version 4 on. */
static const char *labels_of(struct call *c, const struct live_row *r)
{
    AUTO(str_done) struct str out = { 0 };
    const struct live_task_view *tasks = r->view.tasks.at;
    const char *device = r->gpu->device ? strrchr(r->gpu->device, '/') : NULL;
    char index[24];
    snprintf(index, sizeof index, "%lld", (long long)r->gpu->index);
    str_char(&out, '{');
    put_label(&out, "gpu", index);
    put_label(&out, "UUID", r->gpu->uuid);
    put_label(&out, "pci_bus_id", r->gpu->pci);
    put_label(&out, "device", device ? device + 1 : "");
    put_label(&out, "modelName", r->gpu->model);
    put_label(&out, "Hostname", r->node->info.hostname);
    put_label(&out, "hostname", r->node->info.hostname);
    put_label(&out, "DCGM_FI_DRIVER_VERSION", r->gpu->driver);
    put_label(&out, "node", r->node->name);
    if (r->view.tasks.count == 1 && tasks->job) {
        put_label(&out, "hpc_job", id_of(c, PREFIX_JOB, tasks->job));
        put_label(&out, "project", tasks->project);
    }
    if (r->view.simulated)
        put_label(&out, "simulated", "true");
    str_char(&out, '}');
    return arena_text(c->mem, out.at);
}

static void put_head(struct str *out, const char *name, const char *type, const char *help)
{
    str_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_samples(struct str *out, const struct metric *m, const struct live_rows *rows, const char *const *labels)
{
    bool any = false;
    for (size_t i = 0; i < rows->count; i++) {
        int64_t n = *(const int64_t *)((const char *)&rows->at[i].view.live + m->at);
        if (n < 0)
            continue;
        if (!any)
            put_head(out, m->name, m->type, m->help);
        any = true;
        if (m->thousandths)
            str_printf(out, "%s%s %lld.%03lld\n", m->name, labels[i], (long long)(n / 1000), (long long)(n % 1000));
        else
            str_printf(out, "%s%s %lld\n", m->name, labels[i], (long long)n);
    }
}

bool metrics(struct call *c, const void *body, struct err *err)
{
    if (!live_node_check(c, body, err))
        return false;
    struct live_rows rows = live_rows(c, body, 0, SIZE_MAX / 2);
    const char **labels = ARENA_ARRAY(c->mem, const char *, rows.count + 1);
    struct str *out = &c->r->reply;
    str_clear(out);
    for (size_t i = 0; i < rows.count; i++)
        labels[i] = labels_of(c, &rows.at[i]);
    for (size_t i = 0; i < COUNT(metrics_table); i++)
        put_samples(out, &metrics_table[i], &rows, labels);
    put_head(out, "arcus_gpu_healthy", "gauge", "1: the GPU is used; 0: it is kept out, for the reason that gpu.list tells.");
    for (size_t i = 0; i < rows.count; i++)
        str_printf(out, "arcus_gpu_healthy%s %d\n", labels[i], rows.at[i].gpu->healthy);
    return true;
}
