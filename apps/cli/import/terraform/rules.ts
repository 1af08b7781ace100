import type { ImportItem } from '../../../shared/contracts/imports/imports.ts'
import { type Fields, fieldsOf, listOf, positiveOf, some, textOf } from '../items.ts'

export type Mapped = Pick<ImportItem, 'type_key' | 'desired_state'> & { name: string | undefined }
type Rule = { types: RegExp; map: (values: Fields) => Mapped | undefined }

const tagged = (values: Fields): string | undefined => textOf(fieldsOf(values.tags).Name)
const cut = (value: unknown, length: number): string | undefined => textOf(value)?.slice(0, length)

/** Which of our types the providers' resource types map to, and which values are read. */
export const RULES: readonly Rule[] = [
  {
    types:
      /^(aws_(spot_)?instance|google_compute_instance|azurerm_(linux_|windows_)?virtual_machine|(openstack|flexibleengine)_compute_instance_v2|digitalocean_droplet|hcloud_server|linode_instance|vsphere_virtual_machine|proxmox_vm_qemu|libvirt_domain|scaleway_instance_server|oci_core_instance|vultr_instance)$/,
    map: (values) => {
      const name = tagged(values) ?? textOf(values.name) ?? textOf(values.label)
      return {
        type_key: 'infra.virtual_machine',
        name,
        desired_state: some({
          hostname: (name ?? textOf(values.id) ?? 'unnamed').slice(0, 253),
          image: cut(values.ami ?? values.image ?? values.image_name ?? values.image_id, 512),
          cpu_cores: positiveOf(values.cpu_core_count ?? values.vcpus ?? values.num_cpus),
          memory_mib: positiveOf(values.memory),
        }),
      }
    },
  },
  {
    types:
      /^(aws_db_instance|aws_rds_cluster|google_sql_database_instance|azurerm_(postgresql|mysql|mariadb|mssql)_(flexible_)?server|digitalocean_database_cluster|scaleway_rdb_instance)$/,
    map: (values) => ({
      type_key: 'infra.database',
      name: textOf(values.identifier) ?? textOf(values.cluster_identifier) ?? textOf(values.name),
      desired_state: some({
        engine: cut(values.engine, 32) ?? cut(values.database_version, 32) ?? 'sql',
        engine_version: cut(values.engine_version ?? values.version, 32),
        storage_gib: positiveOf(values.allocated_storage),
      }),
    }),
  },
  {
    types:
      /^(aws_(lb|alb|elb)|google_compute_(global_)?forwarding_rule|azurerm_lb|digitalocean_loadbalancer|hcloud_load_balancer|openstack_lb_loadbalancer_v2|scaleway_lb)$/,
    map: (values) => ({ type_key: 'infra.load_balancer', name: textOf(values.name), desired_state: {} }),
  },
  {
    types:
      /^(aws_ebs_volume|google_compute_disk|azurerm_managed_disk|digitalocean_volume|hcloud_volume|(openstack|flexibleengine)_blockstorage_volume_v[23]|linode_volume|scaleway_instance_volume)$/,
    map: (values) => {
      const size_gib = positiveOf(values.size ?? values.disk_size_gb)
      return size_gib === undefined
        ? undefined
        : {
            type_key: 'infra.volume',
            name: tagged(values) ?? textOf(values.name),
            desired_state: some({ size_gib, class: cut(values.type ?? values.volume_type, 63) }),
          }
    },
  },
  {
    types:
      /^(aws_eks_cluster|google_container_cluster|azurerm_kubernetes_cluster|digitalocean_kubernetes_cluster|scaleway_k8s_cluster|linode_lke_cluster)$/,
    map: (values) => ({
      type_key: 'infra.cluster',
      name: textOf(values.name),
      desired_state: some({ kind: 'kubernetes', release: cut(values.kubernetes_version ?? values.version, 64) }),
    }),
  },
  {
    types:
      /^(aws_subnet|google_compute_subnetwork|azurerm_subnet|openstack_networking_subnet_v2|hcloud_network_subnet)$/,
    map: (values) => {
      const ranges = [values.cidr_block, values.ip_cidr_range, values.cidr, values.ip_range]
      const cidrs = [...ranges, ...listOf(values.address_prefixes)].filter((one) =>
        /^[0-9a-fA-F.:]{2,45}\/[0-9]{1,3}$/.test(String(one ?? '')),
      )
      const zone = cut(values.availability_zone, 63)
      const name = tagged(values) ?? textOf(values.name)
      return { type_key: 'topology.segment', name, desired_state: some({ cidrs, zone }) }
    },
  },
  {
    types:
      /^(aws_route53_record|google_dns_record_set|cloudflare_(dns_)?record|azurerm_(private_)?dns_(a|aaaa|cname)_record|digitalocean_record)$/,
    map: (values) => {
      const host = (textOf(values.fqdn) ?? textOf(values.hostname) ?? textOf(values.name))?.replace(/\.$/, '')
      return host === undefined || !/^[A-Za-z0-9_.*-]{1,253}$/.test(host)
        ? undefined
        : { type_key: 'infra.endpoint', name: host, desired_state: { url: `https://${host}/`, kind: 'dns' } }
    },
  },
  {
    types:
      /^(aws_acm_certificate|tls_(self_signed|locally_signed)_cert|google_compute_(managed_)?ssl_certificate|acme_certificate)$/,
    map: (values) => {
      const name = textOf(values.domain_name) ?? textOf(values.common_name) ?? textOf(values.name)
      const desired_state = { common_name: name?.slice(0, 253) }
      return name === undefined ? undefined : { type_key: 'infra.certificate', name, desired_state }
    },
  },
]

/** Types of the pack `cloud`, by the resource types of the providers. */
const CLOUD: readonly [RegExp, string][] = [
  [/_(vpc|virtual_network|compute_network|networking_network_v2|network)$/, 'cloud.network'],
  [/_(internet_gateway|nat_gateway|route|route_table|route_table_association|compute_router|router)$/, 'cloud.gateway'],
  [
    /_(security_group|security_group_rule|compute_firewall|firewall|network_security_group|network_acl)$/,
    'cloud.firewall',
  ],
  [/_(eip|compute_(global_)?address|public_ip|floating_ip|reserved_ip)$/, 'cloud.address'],
  [/_(s3_bucket|storage_bucket|storage_account|storage_container|spaces_bucket|object_bucket)$/, 'cloud.bucket'],
  [/_(sqs_queue|sns_topic|pubsub_topic|pubsub_subscription|servicebus_(queue|topic))$/, 'cloud.queue'],
  [/_(lambda_function|cloudfunctions2?_function|function_app|cloud_run_service)$/, 'cloud.function'],
  [
    /_(iam_(role|policy|user|group|instance_profile|role_policy_attachment)|service_account|role_assignment)$/,
    'cloud.identity',
  ],
  [/_(route53_zone|dns_managed_zone|dns_zone|cloudflare_zone|domain)$/, 'cloud.dns_zone'],
  [/_(elasticache_(cluster|replication_group)|redis_(instance|cache))$/, 'cloud.cache'],
  [/_(secretsmanager_secret|secret_manager_secret|key_vault_secret|kms_key|key_vault)$/, 'cloud.secret'],
]

/** The item of a resource type of the pack `cloud`; `undefined` for all others. */
export const cloudOf = (provider: string, { type, values }: { type: string; values: Fields }): Mapped | undefined => {
  const type_key = CLOUD.find(([types]) => types.test(type))?.[1]
  if (type_key === undefined) return undefined
  const cidr = textOf(values.cidr_block) ?? textOf(listOf(values.address_space)[0])
  return {
    type_key,
    name: undefined,
    desired_state: some({
      provider: provider.slice(0, 63),
      kind: type.slice(0, 128),
      id: cut(values.id, 512),
      region: cut(values.region ?? values.location, 63),
      cidr: type_key === 'cloud.network' && /^[0-9a-fA-F.:]{2,45}\/[0-9]{1,3}$/.test(cidr ?? '') ? cidr : undefined,
    }),
  }
}
