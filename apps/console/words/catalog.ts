import { impact, picture } from './catalog/picture.ts'
import { resource, resources } from './catalog/resource.ts'
import { capabilities, topology } from './catalog/topology.ts'

/** Texts for the catalog: resources, places, capabilities. */
export const tCatalog = { resources, resource, topology, capabilities, picture, impact }
