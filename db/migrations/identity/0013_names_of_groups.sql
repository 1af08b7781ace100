CREATE UNIQUE INDEX IF NOT EXISTS "scim_people_names" ON "identity"."scim_resources" USING btree ("provider","folded") WHERE type = 'User';--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "scim_names" ON "identity"."scim_resources" USING btree ("provider","type","folded");--> statement-breakpoint
DROP INDEX IF EXISTS "identity"."scim_resources_provider_type_folded_index";
