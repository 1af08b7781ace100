import { resource, resources } from './en/resource.ts'
import { capabilities, topology } from './en/topology.ts'

/** Words of the catalog: resources, places, capabilities. */
export const tCatalog = { resources, resource, topology, capabilities }
