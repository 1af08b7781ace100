import { impact, picture } from './catalog/picture.ts'
import { resource, resources } from './catalog/resource.ts'
import { capabilities, topology } from './catalog/topology.ts'

/** Words of the catalog: resources, places, capabilities. */
export const tCatalog = { resources, resource, topology, capabilities, picture, impact }
