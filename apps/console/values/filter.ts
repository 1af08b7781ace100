/** A field and an operator. A mistyped field too: the catalog then names the fault. */
const COMPARED = /(^|[\s(])-?[a-z_]+(\.[^\s=<>:!.]+)*\s*(=|!=|<|>)/i

/** The fields of filters (catalog.md 7.1). Before a colon only these count: images and addresses have colons too. */
const FIELDS = [
  ...['resource_id', 'name', 'display_name', 'owner', 'parent_id', 'type_key', 'type_version', 'layer_kind'],
  ...['lifecycle_status', 'health_status', 'health_revision', 'drift', 'version', 'generation', 'observed_generation'],
  ...['created_by', 'created_at', 'updated_by', 'updated_at', 'provides'],
]
const INSIDE = ['labels', 'scope', 'desired_state', 'observed_state']
const CONTAINED = new RegExp(`(^|[\\s(])-?(${FIELDS.join('|')}|(${INSIDE.join('|')})\\.[^\\s=<>:!]+)\\s*:(?!//)`, 'i')

/** Whether a text is words to search for rather than a filter. */
export const isWords = (q: string): boolean => q !== '' && !COMPARED.test(q) && !CONTAINED.test(q)
