CREATE TABLE "identity"."scim_members" (
	"group_id" uuid NOT NULL,
	"user_id" uuid NOT NULL,
	CONSTRAINT "scim_members_group_id_user_id_pk" PRIMARY KEY("group_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "identity"."scim_resources" (
	"id" uuid PRIMARY KEY NOT NULL,
	"provider" text NOT NULL,
	"type" text NOT NULL,
	"external_id" text,
	"name" text NOT NULL,
	"folded" text NOT NULL,
	"display_name" text,
	"disabled_at" timestamp with time zone,
	"removed" boolean DEFAULT false NOT NULL,
	"version" bigint DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "identity"."users" ADD COLUMN "recovering" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "identity"."scim_members" ADD CONSTRAINT "scim_members_group_id_scim_resources_id_fk" FOREIGN KEY ("group_id") REFERENCES "identity"."scim_resources"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "identity"."scim_members" ADD CONSTRAINT "scim_members_user_id_scim_resources_id_fk" FOREIGN KEY ("user_id") REFERENCES "identity"."scim_resources"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "scim_members_user_id_index" ON "identity"."scim_members" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_resources_provider_type_external_id_index" ON "identity"."scim_resources" USING btree ("provider","type","external_id");--> statement-breakpoint
CREATE UNIQUE INDEX "scim_resources_provider_type_folded_index" ON "identity"."scim_resources" USING btree ("provider","type","folded");